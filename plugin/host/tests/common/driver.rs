//! Routers with the driver of `driver.c`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use shoal_module::cli::{Args, Run};
use shoal_module::config::{At, Setting, Settings, TEXT, Value};
use shoal_module::{LoadedPlugins, Module};
use shoal_testkit::{Router, STACK};

thread_local! {
    pub static STANZA: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The stanza of the start-up file, as the daemon puts it on the shelf.
pub static SECTIONS: Module = Module {
    name: "sections",
    init: |control| {
        let mut settings = Settings::default();
        let value = Value::Text(STANZA.with_borrow(Clone::clone));
        settings.push(Setting { key: TEXT, value, at: At::default() });
        control.put(BTreeMap::from([("test", settings)]));
        Ok(())
    },
    ..Module::NONE
};

/// A router with the devices of a stanza.
pub fn start(folder: &Path, stanza: &str) -> Router {
    STANZA.set(stanza.to_owned());
    super::look_in(&[folder], |_| shoal_plugin_host::Wanted::Yes);
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &super::SETUP, &SECTIONS, &shoal_plugin_host::MODULE]);
    Router::new(&modules)
}

/// Runs a command of the plugin.
pub fn command(router: &Router, path: &str, words: &str) -> Result<String, String> {
    let commands = router.get::<LoadedPlugins>().commands.clone();
    let command = commands.iter().find(|c| c.syntax.starts_with(path)).unwrap();
    let Run::Now(run) = command.run else { panic!("{path} takes its time") };
    let args = Args::new(router.control().clone(), path).with("words", words, 0..0);
    run(router.control(), &args).map(|o| o.to_text()).map_err(|e| e.message().to_owned())
}

/// Makes the plugin lie in some way.
pub fn lie(router: &Router, mode: u32) {
    command(router, "test mode", &mode.to_string()).unwrap();
}
