//! Routers with plugins that are built for the test.
#![allow(dead_code)] // not every test uses all of it

pub mod driver;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use shoal_module::Module;
use shoal_plugin_host::{Setup, Wanted};
use shoal_testkit::{Router, STACK};

pub const C: &str = "example_c_plugin.so";
pub const RUST: &str = "example_rust_plugin.so";

type PluginChoice = (Vec<PathBuf>, fn(&str) -> Wanted);

thread_local! {
    static PATHS: RefCell<PluginChoice> = const { RefCell::new((Vec::new(), |_| Wanted::Yes)) };
}

/// Stands in front of the module under test, as the daemon does.
pub static SETUP: Module = Module {
    name: "setup",
    init: |control| {
        let (paths, wanted) = PATHS.with_borrow(Clone::clone);
        control.put(Setup { paths, wanted: Box::new(wanted) });
        Ok(())
    },
    ..Module::NONE
};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the router is told.
pub fn look_in(paths: &[&Path], wanted: fn(&str) -> Wanted) {
    PATHS.set((paths.iter().map(|p| p.to_path_buf()).collect(), wanted));
}

/// A router with the stack and the plugins of a folder.
pub fn router(folder: &Path) -> Router {
    look_in(&[folder], |_| Wanted::Yes);
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &SETUP, &shoal_plugin_host::MODULE]);
    Router::new(&modules)
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Both examples, as `example_c_plugin.so` and `example_rust_plugin.so`: the one is built by its own Makefile, the
/// other by cargo, for this test depends on it.
pub fn examples(folder: &Path) {
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(folder).arg("-f").arg(root().join("plugin/examples/c/Makefile"));
    make.arg(format!("SHOAL={}", root().join("plugin/include").display()));
    make.arg(format!("VPATH={}", root().join("plugin/examples/c").display()));
    run(make);
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().join("libshoal_plugin_example_rust.so");
    std::fs::copy(&built, folder.join(RUST)).unwrap_or_else(|e| panic!("{}: {e}", built.display()));
}

/// A plugin from `tests/wrong.c` with some macros of its own.
pub fn compile(folder: &Path, file: &str, defines: &[&str]) {
    compile_from(folder, file, "wrong.c", defines);
}

/// A plugin from a source of the tests with some macros of its own.
pub fn compile_from(folder: &Path, file: &str, source: &str, defines: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-w", "-fPIC", "-shared", "-fvisibility=hidden"]);
    cc.arg("-I").arg(root().join("plugin/include")).arg("-o").arg(folder.join(file));
    cc.args(defines.iter().map(|d| format!("-D{d}")));
    cc.arg(root().join("plugin/host/tests").join(source));
    run(cc);
}
