//! The program against a real command-line socket.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::rc::Rc;

use shoal_cli::Cli;
use shoal_cli::server::{Settings, Task, listen};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command as Declared, Later, Output as Answer, Sink};

fn small(_: &Control, args: &Args) -> Result<Answer, CliError> {
    let n: u8 = args.get("n")?;
    Ok(Answer::text(format!("n is {n}")))
}

fn count(_: Rc<Control>, _: Args, sink: Sink) -> Later {
    Box::pin(async move {
        sink.line("one")?;
        Ok(Answer::text("two"))
    })
}

static COMMANDS: &[Declared] = &[
    Declared::new("test small <n:u32>", "Take a small number", small),
    Declared::new("test block <x:block>", "Take a block", |_, a| Ok(Answer::text(a.text("x").unwrap_or("")))),
    Declared::later("test count", "Count", count),
];

fn serve(path: &Path) {
    let settings = Settings::new(path);
    let (ready, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let executor = Rc::new(async_executor::LocalExecutor::new());
        let listener = listen(settings).unwrap();
        ready.send(()).unwrap();
        let spawner = Rc::clone(&executor);
        let spawn = move |task: Task| spawner.spawn(task).detach();
        let cli = Rc::new(Cli::new(COMMANDS, []).unwrap());
        futures_lite::future::block_on(executor.run(listener.serve(cli, Rc::new(Control::new()), spawn)));
    });
    wait.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
}

fn shoalctl(socket: &Path, words: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shoalctl"))
        .arg("-s")
        .arg(socket)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A one-shot command does not read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn one_command_prints_its_answer_and_sets_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("cli.sock");
    serve(&socket);
    let good = shoalctl(&socket, &["te", "sm", "7"], "");
    assert_eq!((good.status.code(), text(&good.stdout)), (Some(0), "n is 7\n".into()));
    let json = shoalctl(&socket, &["--json", "te", "sm", "7"], "");
    assert_eq!(text(&json.stdout), "\"n is 7\"\n");
    let streamed = shoalctl(&socket, &["test", "count"], "");
    assert_eq!(text(&streamed.stdout), "one\ntwo\n");
    let bad = shoalctl(&socket, &["test", "smal", "700"], "");
    assert_eq!((bad.status.code(), text(&bad.stdout)), (Some(1), String::new()));
    assert!(text(&bad.stderr).contains("does not fit, 0 to 255"), "{}", text(&bad.stderr));
}

#[test]
fn a_pipe_or_a_file_runs_what_is_right_and_names_the_lines_that_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("cli.sock");
    serve(&socket);
    let script = "# remark\ntest small 1\ntest block {\n a\n}\nnonsense\ntest small 2\n";
    let piped = shoalctl(&socket, &[], script);
    assert_eq!((piped.status.code(), text(&piped.stdout)), (Some(1), "n is 1\na\nn is 2\n".into()));
    assert!(
        text(&piped.stderr).starts_with("<stdin>:6: unknown input `nonsense'"),
        "{}",
        text(&piped.stderr)
    );
    let file = dir.path().join("x.cli");
    std::fs::write(&file, script).unwrap();
    let name = file.display().to_string();
    let from_file = shoalctl(&socket, &["-f", &name], "");
    assert!(text(&from_file.stderr).starts_with(&format!("{name}:6: ")), "{}", text(&from_file.stderr));
}

#[test]
fn without_a_router_it_says_where_it_looked_and_what_to_do() {
    let out = shoalctl(Path::new("/no/such/cli.sock"), &["show", "version"], "");
    assert_eq!(out.status.code(), Some(1));
    let said = text(&out.stderr);
    assert!(said.contains("/no/such/cli.sock: no such socket") && said.contains("Start it with"), "{said}");
}
