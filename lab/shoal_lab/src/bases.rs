//! Finding another build to compare with: the router, and the program of replays.

use std::path::{Path, PathBuf};

use shoal_lab_dut::can_run;

use crate::args::Bases;
use crate::replay::PROGRAM as REPLAY;

/// The router's name.
const ROUTER: &str = "shoal";
/// Where a checkout has them, and where an installation or a copy.
const ROUTERS: [&str; 2] = ["shoal", "target/release/shoal"];
const REPLAYS: [&str; 3] =
    ["shoal-lab-graph", "target/bench/release/shoal-lab-graph", "../bench/release/shoal-lab-graph"];

/// The programs of another build; what is none is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base {
    /// The router.
    pub router: Option<PathBuf>,
    /// The program of replays.
    pub replay: Option<PathBuf>,
}

/// Finds what was named.
///
/// # Errors
///
/// If something that was named is no program, or a folder has neither.
pub fn find(named: &Bases) -> Result<Base, String> {
    let mut found = Base::default();
    if let Some(base) = &named.base {
        let within =
            |folder: &Path, names: &[&str]| names.iter().map(|n| folder.join(n)).find(|p| can_run(p));
        if base.is_dir() {
            found = Base { router: within(base, &ROUTERS), replay: within(base, &REPLAYS) };
            if found == Base::default() && named.base_replay.is_none() {
                return Err(format!(
                    "--base {}: there is neither {ROUTER} nor {REPLAY} in it, in target/release or in target/bench/release",
                    base.display()
                ));
            }
        } else if !can_run(base) {
            return Err(format!(
                "--base {} is no program; name a build of {ROUTER}, or its folder",
                base.display()
            ));
        } else if base.file_name().is_some_and(|name| name == REPLAY) {
            found.replay = Some(base.clone());
        } else {
            let beside = base.parent().and_then(|folder| within(folder, &REPLAYS));
            found = Base { router: Some(base.clone()), replay: beside };
        }
    }
    if let Some(replay) = &named.base_replay {
        if !can_run(replay) {
            return Err(format!(
                "--base-replay {} is no program; name a build of {REPLAY}",
                replay.display()
            ));
        }
        found.replay = Some(replay.clone());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn found(base: &Path) -> Result<Base, String> {
        find(&Bases { base: Some(base.to_owned()), base_replay: None })
    }

    #[test]
    fn a_folder_and_a_checkout_have_both() {
        let here = tempfile::tempdir().unwrap();
        let (router, replay) = (here.path().join("a/shoal"), here.path().join("a/shoal-lab-graph"));
        program(&router);
        program(&replay);
        let both = Base { router: Some(router.clone()), replay: Some(replay.clone()) };
        assert_eq!(found(&here.path().join("a")), Ok(both.clone()));
        assert_eq!(found(&router), Ok(both));
        assert_eq!(found(&replay), Ok(Base { router: None, replay: Some(replay) }));
        let checkout = here.path().join("b");
        program(&checkout.join("target/release/shoal"));
        program(&checkout.join("target/bench/release/shoal-lab-graph"));
        for named in
            [checkout.clone(), checkout.join("target/release"), checkout.join("target/release/shoal")]
        {
            let base = found(&named).unwrap();
            assert!(base.router.is_some() && base.replay.is_some(), "{named:?}: {base:?}");
        }
    }

    #[test]
    fn what_is_no_program_is_named() {
        let here = tempfile::tempdir().unwrap();
        let error = found(here.path()).unwrap_err();
        assert!(error.contains("neither shoal nor shoal-lab-graph"), "{error}");
        assert!(found(&here.path().join("none")).unwrap_err().contains("none is no program"));
        let wrong = Bases { base: None, base_replay: Some("/nowhere/x".into()) };
        assert!(find(&wrong).unwrap_err().contains("--base-replay /nowhere/x"));
        assert_eq!(find(&Bases::default()), Ok(Base::default()));
    }
}
