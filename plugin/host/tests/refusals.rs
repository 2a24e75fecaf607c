//! Libraries that are no plugins of this router: one line each, and the router runs without them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use std::rc::Rc;

use shoal_graph::{Clock, Graph, GraphConfig};
use shoal_module::{Control, LoadedPlugins, init_all};
use shoal_plugin_host::Wanted;

/// What is wrong, and what the line says of it.
const WRONG: &[(&[&str], &[&str])] = &[
    (&["MAJOR=2"], &["built for plugin ABI 2.2", "expected 1.0 to 1.2"]),
    (&["MINOR=7"], &["built for plugin ABI 1.7", "expected 1.0 to 1.2"]),
    (&["EXTRA=8"], &["the descriptor says it has 96 bytes, expected 88"]),
    (&["EXTRA=-56"], &["the descriptor says it has 32 bytes, expected 88"]),
    (&["NODE_EXTRA=1"], &["a node says it has 65 bytes, expected 64"]),
    (&["RETURNED=0"], &["`shoal_plugin_v1' returned is null", "expected a descriptor"]),
    (&["RETURNED=(void*)((char*)&plugin+1)"], &["`shoal_plugin_v1' returned", "expected a descriptor"]),
    (&["SYMBOL=another"], &["exports no function `shoal_plugin_v1'", "ABI 1"]),
    (&["PROCESS=NULL"], &["process function of node `test-act' is null"]),
    (&["NAME=NULL"], &["the plugin's name is null"]),
    (&["NAME=\"\""], &["the plugin's name", "1 to 256 bytes"]),
    (&["NAME=\"a b\""], &["the plugin's name `a b'", "letters, digits"]),
    (&["VERSION=\"\\xff\""], &["the plugin's version", "UTF-8"]),
    (&["VERSION=\"1\\n2\""], &["the plugin's version", "one line"]),
    (&["NODES=65"], &["the list of nodes: 65, expected at most 64"]),
    (&["NODE_LIST=NULL"], &["the list of nodes is null"]),
    (&["ACT=\"ip4-lookup\""], &["node `ip4-lookup' exists already"]),
    (&["ACT=\"test-measure\""], &["node `test-measure' exists already"]),
    (&["NEXT=\"nowhere\""], &["node `test-act' names node `nowhere'", "expected a node of the router"]),
    (&["COUNTER=\"undecided\""], &["counter `test-act: undecided' exists already"]),
    (&["SEVERITY=9"], &["the severity of a counter of node `test-act': 9, expected at most 2"]),
    (&["ARC=\"ip5-unicast\""], &["no feature arc `ip5-unicast'", "ip4-unicast", "ip6-unicast"]),
    (&["FEATURE_NODE=\"ip4-lookup\""], &["names node `ip4-lookup', expected a node of the plugin"]),
    (&["FEATURES=2"], &["feature `test-act on ip4-unicast' exists already"]),
    (&["BEFORE=ACT"], &["features of arc ip4-unicast want to come before each other: test-act"]),
    (&["INIT=5"], &["its init function returned 5, expected 0"]),
];

#[test]
fn what_is_no_plugin_is_refused_in_one_line_and_the_router_runs_without_it() {
    let folder = tempfile::tempdir().unwrap();
    for (n, (defines, _)) in WRONG.iter().enumerate() {
        common::compile(folder.path(), &format!("{n:02}.so"), defines);
    }
    std::fs::write(folder.path().join("90.so"), "not a library").unwrap();
    std::fs::write(folder.path().join("91.so"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", folder.path().join("92.so")).unwrap();
    std::fs::create_dir(folder.path().join("93.so")).unwrap();
    std::fs::write(folder.path().join("README"), "is not looked at").unwrap();
    common::compile(folder.path(), "95.so", &[]);
    common::compile(folder.path(), "96.so", &["ACT=\"other\"", "MEASURE=\"another\""]);
    let mut router = common::router(folder.path());
    router.run();
    let loaded = router.get::<LoadedPlugins>();
    let foreign: &[(&str, &[&str])] = &[
        ("90.so", &["cannot be loaded, expected a shared library of this machine"]),
        ("91.so", &["cannot be loaded"]),
        ("92.so", &["cannot be loaded"]),
        ("93.so", &["cannot be loaded"]),
        ("96.so", &["plugin `test of ", "95.so' exists already"]),
    ];
    assert_eq!(loaded.refused.len(), WRONG.len() + foreign.len(), "{:#?}", loaded.refused);
    let wrong = WRONG.iter().enumerate().map(|(n, (_, words))| (format!("{n:02}.so"), *words));
    let foreign = foreign.iter().map(|(file, words)| ((*file).to_owned(), *words));
    for ((file, words), line) in wrong.chain(foreign).zip(&loaded.refused) {
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.starts_with(&folder.path().join(&file).display().to_string()), "{file}: {line}");
        for word in words {
            assert!(line.contains(word), "{word}: {line}");
        }
    }
    let names: Vec<_> = loaded.plugins.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["95.so"]);
    assert!(router.graph().node("test-act").is_ok() && router.graph().node("other").is_err());
}

/// The modules' start, by itself.
fn start(folder: &std::path::Path, wanted: fn(&str) -> Wanted) -> Result<LoadedPlugins, String> {
    common::look_in(&[folder], wanted);
    let control = Rc::new(Control::new());
    let config = GraphConfig { stats_bytes: 1 << 26, clock: Clock::manual(), ..GraphConfig::default() };
    control.put_rc(Graph::new(config).unwrap());
    init_all(&control, &[&common::SETUP, &shoal_plugin_host::MODULE]).map_err(|e| e.to_string())?;
    Ok((*control.get::<LoadedPlugins>().unwrap()).clone())
}

#[test]
fn a_plugin_that_is_disabled_is_not_looked_at_and_one_that_is_named_must_load() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.so"), "not a library").unwrap();
    let line = start(folder.path(), |_| Wanted::Named).unwrap_err();
    assert!(line.contains("a.so: cannot be loaded") && line.lines().count() == 1, "{line}");
    let none = start(folder.path(), |_| Wanted::No).unwrap();
    assert_eq!((none.plugins.len(), none.refused.len()), (0, 0));
    let unasked = start(folder.path(), |_| Wanted::Yes).unwrap();
    assert_eq!(unasked.refused.len(), 1);
    let nowhere = start(&folder.path().join("nowhere"), |_| Wanted::Yes).unwrap();
    assert!(nowhere.refused[0].contains("nowhere: no plugins there, expected a directory"));
    let file = start(&folder.path().join("a.so"), |_| Wanted::Yes).unwrap();
    assert!(file.refused[0].contains("a.so: no plugins there"));
}
