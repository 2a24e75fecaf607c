//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::Cnat;
use crate::cli::spec_text;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "cnat translation add <translation:rest>", "").found(number_of),
    LineKind::setting(
        Phase::Policies,
        "set cnat snat-policy addr [<ip4:ip4-address>] [<ip6:ip6-address>] [<interface>] [table <table:u32>] [return-table <return-table:u32>] [no-client] [no-default]",
        "table",
        "set cnat snat-policy addr [table <table>]",
    ),
    LineKind::item(
        Phase::Policies,
        "set cnat snat-policy prefix <prefix:ip-prefix>",
        "set cnat snat-policy prefix del <prefix>",
    ),
    LineKind::item(
        Phase::Policies,
        "set cnat snat-policy if table {include-v4 | include-v6 | k8s | host} <interface>",
        "set cnat snat-policy if del table [include-v4] [include-v6] [k8s] [host] <interface>",
    ),
    LineKind::setting(
        Phase::Policies,
        "set cnat snat-policy {if-pfx | k8s | dnat}",
        "",
        "set cnat snat-policy none",
    ),
    LineKind::item(
        Phase::Policies,
        "set cnat feature <interface> enable",
        "set cnat feature <interface> disable",
    ),
];

/// The translation goes by its number.
fn number_of(control: &Control, args: &Args) -> Option<String> {
    let cnat = control.get::<Cnat>().ok()?;
    let all = cnat.translations();
    let (id, _) = all.iter().find(|(_, spec)| spec_text(spec, cnat.interfaces()) == args.line())?;
    Some(format!("cnat translation del {id}"))
}
