//! Tables into a router through its CLI socket: commands, dumps, and what is refused.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::io::{Seek, Write};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use async_executor::LocalExecutor;
use shoal_cli::Cli;
use shoal_cli::server::{Settings, Task, listen};
use shoal_graph::process::Processes;
use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_lab_routes::commands::Wanted;
use shoal_lab_routes::dump;
use shoal_lab_routes::feed::Router;
use shoal_module::{Control, Module};
use tempfile::TempDir;

const WANTED: Wanted = Wanted { ip4: 3_000, ip6: 2_000, next_hops: 20, ..Wanted::INTERNET };

/// A router of forwarding tables and a command line, on a thread of its own for the life of the test process.
fn serve() -> (PathBuf, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cli.sock");
    let settings = Settings::new(&path);
    let (ready, wait) = mpsc::channel();
    thread::spawn(move || {
        let modules: [&Module; 3] = [&shoal_interface::MODULE, &shoal_adj::MODULE, &shoal_fib::MODULE];
        let control = Rc::new(Control::new());
        let clock = Clock::manual();
        control.put_rc(Graph::new(GraphConfig { clock: clock.clone(), ..GraphConfig::default() }).unwrap());
        control.put(Processes::new(clock));
        for module in modules {
            (module.init)(&control).unwrap();
        }
        control.graph().unwrap().build().unwrap();
        let types = modules.iter().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
        let cli = Rc::new(Cli::new(modules.iter().flat_map(|m| m.commands), types).unwrap());
        let listener = listen(settings).unwrap();
        ready.send(()).unwrap();
        let executor = Rc::new(LocalExecutor::new());
        let spawner = Rc::clone(&executor);
        let spawn = move |task: Task| spawner.spawn(task).detach();
        futures_lite::future::block_on(executor.run(listener.serve(cli, control, spawn)));
    });
    wait.recv_timeout(Duration::from_mins(1)).unwrap();
    (path, dir)
}

/// Runs the program with this input.
fn routes(arguments: &[&str], input: &[u8]) -> Output {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input).unwrap();
    file.rewind().unwrap();
    Command::new(env!("CARGO_BIN_EXE_shoal-lab-routes")).args(arguments).stdin(file).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What a command of the router's answers; it is empty where nothing went wrong.
fn ask(socket: &str, line: &str) -> String {
    said(&routes(&["--socket", socket, "text", "-"], format!("{line}\n").as_bytes()))
}

#[test]
fn a_dump_and_commands_are_loaded_into_a_router() {
    let (path, _dir) = serve();
    let socket = path.to_str().unwrap();
    let mut mrt = Vec::new();
    dump::write(&WANTED, &mut mrt).unwrap();
    let loaded = routes(&["--socket", socket, "mrt", "-", "--keep-next-hops"], &mrt);
    assert!(loaded.status.success() && said(&loaded).starts_with("5,040 commands in "), "{}", said(&loaded));

    // The same table as commands, withdrawn: so all of it was there.
    let commands = routes(&["mrt", "-", "--keep-next-hops"], &mrt).stdout;
    let commands = String::from_utf8(commands).unwrap().replace("ip route add", "ip route del");
    assert_eq!(commands.lines().count(), 5_040);
    let gone = routes(&["--socket", socket, "text", "-"], commands.as_bytes());
    assert!(gone.status.success() && said(&gone).starts_with("5,040 commands in "), "{}", said(&gone));

    // Without its own next hops, which become neighbours; and straight from the seed.
    let loaded = routes(&["--socket", socket, "mrt", "-", "--first4", "192.0.2.1", "--next-hops", "7"], &mrt);
    assert!(loaded.status.success(), "{}", said(&loaded));
    let seeded = routes(&["--socket", socket, "--ip4", "500", "--ip6", "300", "--seed", "9"], b"");
    assert!(seeded.status.success() && said(&seeded).starts_with("1,200 commands in "), "{}", said(&seeded));
}

#[test]
fn the_first_command_that_fails_ends_the_run_with_its_number() {
    let (path, _dir) = serve();
    let socket = path.to_str().unwrap();
    let many = (0..5_000).map(|n| format!("ip route add 10.{}.{}.0/24 via drop\n", n / 256, n % 256));
    let text = many.collect::<String>()
        + "ip route add 10.99.0.0/24 via 0.0.0.0\nip route add 11.0.0.0/8 via drop\n";
    let failed = routes(&["--socket", socket, "text", "-"], text.as_bytes());
    let error = said(&failed);
    assert!(
        !failed.status.success() && error.contains("command 5001, `ip route add 10.99.0.0/24"),
        "{error}"
    );
    assert!(error.contains("0.0.0.0 is no next hop"), "{error}");
    assert!(ask(socket, "ip route del 10.19.135.0/24").contains("1 commands"), "those before it are there");
    assert!(ask(socket, "ip route del 11.0.0.0/8").contains("1 commands"), "one sent with it is, too");

    let cut = routes(&["--socket", socket, "mrt", "-"], b"BZh91AY&SY, and so on");
    assert!(!cut.status.success() && said(&cut).contains("byte 0"), "{}", said(&cut));
    let missing = routes(&["--socket", "/nowhere/cli.sock"], b"");
    assert!(!missing.status.success() && said(&missing).contains("/nowhere/cli.sock"), "{}", said(&missing));
    assert!(Router::connect(&path, None).is_ok(), "the router serves others");
}
