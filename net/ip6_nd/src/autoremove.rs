//! `ip6-dad-autoremove`: an address that another station has is taken from the interface. As VPP's plugin of this name,
//! it runs only when the start-up file enables it: an operator may rather see the address and what became of it.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use serde::Serialize;
use shoal_ip6::Ip6;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_module::{Control, InitError, LineKind, Module, Phase, Running};

use crate::observe::Observed;
use crate::{AddressState, Nd};

/// The module.
pub static MODULE: Module = Module {
    name: "ip6-dad-autoremove",
    description: "Takes addresses away that another station has",
    init,
    commands: COMMANDS,
    running,
    lines: LINES,
    ..Module::NONE
};

static COMMANDS: &[Command] = &[
    Command::new(
        "set ip6 dad autoremove {enable | disable}",
        "Take addresses away that another station has, or no longer",
        set,
    )
    .doc("`enable` also has the link asked for new addresses, once each, unless it is asked already.")
    .examples(&["set ip6 dad autoremove enable", "set ip6 dad autoremove disable"]),
    Command::new("show ip6 dad autoremove", "Show whether addresses of other stations are taken away", show)
        .examples(&["show ip6 dad autoremove"]),
];

/// Whether it is on, and what it has done.
struct Autoremove {
    on: Cell<bool>,
    removed: Cell<u64>,
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (auto, nd) =
        (control.put(Autoremove { on: Cell::new(false), removed: Cell::new(0) }), control.get::<Nd>()?);
    switch_on(&auto, &nd);
    let weak = Rc::downgrade(control);
    nd.observe(move |what| {
        let Observed::Address { key, standing: AddressState::Duplicate, .. } = what else { return };
        let (Some(control), key) = (weak.upgrade(), *key) else { return };
        let Ok(processes) = control.processes() else { return };
        if !auto.on.get() {
            return;
        }
        let auto = Rc::clone(&auto);
        // Everybody is to hear of it before it goes.
        processes.spawn_unlisted(async move { remove(&control, &auto, key) });
    });
    Ok(())
}

fn remove(control: &Control, auto: &Autoremove, (interface, address): crate::Key) {
    let (Ok(nd), Ok(ip6)) = (control.get::<Nd>(), control.get::<Ip6>()) else { return };
    let duplicate = nd.addresses().into_iter().find(|own| {
        own.interface == interface && own.prefix.addr() == address && own.standing == AddressState::Duplicate
    });
    let Some(own) = duplicate else { return };
    match ip6.del_address(interface, own.prefix) {
        Ok(()) => {
            auto.removed.set(auto.removed.get() + 1);
            tracing::warn!(%interface, "{address} is taken away: another station has it");
        }
        Err(e) => tracing::warn!(%interface, "{address} is another station's and stays: {e}"),
    }
}

fn switch_on(auto: &Autoremove, nd: &Nd) {
    auto.on.set(true);
    if nd.dad_transmits() == 0 {
        nd.set_dad_transmits(1);
    }
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let auto = control.get::<Autoremove>()?;
    if args.has("enable") {
        switch_on(&auto, &*control.get::<Nd>()?);
    } else {
        auto.on.set(false);
    }
    Ok(Output::none())
}

#[derive(Serialize)]
struct View {
    enabled: bool,
    removed: u64,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DAD Auto-Remove:")?;
        writeln!(f, "  Enabled: {}", if self.enabled { "yes" } else { "no" })?;
        writeln!(f, "  Addresses removed: {}", self.removed)
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let auto = control.get::<Autoremove>()?;
    Ok(Output::view(View { enabled: auto.on.get(), removed: auto.removed.get() }))
}

fn running(control: &Control, running: &mut Running) {
    if let Some(auto) = running.part::<Autoremove>(control)
        && !auto.on.get()
    {
        running.line(Phase::System, "set ip6 dad autoremove disable".to_owned());
    }
}

/// The form of line that it writes.
static LINES: &[LineKind] = &[LineKind::setting(
    Phase::System,
    "set ip6 dad autoremove disable",
    "",
    "set ip6 dad autoremove enable",
)];
