//! The profiles that come with the lab.

use std::path::{Path, PathBuf};

use crate::ProfileError;

/// Each profile's name, what it sends, and its text.
pub const PROFILES: &[(&str, &str, &str)] = &[
    (
        "bench",
        "the eight load tests: size=N|imix, vm=none|var1|var2|random|tuple|size|cached",
        include_str!("../profiles/bench.py"),
    ),
    ("imix", "three sizes: mix=classic|csit|bench", include_str!("../profiles/imix.py")),
    (
        "thesis",
        "a heavy and a latency stream: size=N, cache=N, latency_pps=N",
        include_str!("../profiles/thesis.py"),
    ),
    ("udp_1pkt", "one frame of 64 bytes", include_str!("../profiles/udp_1pkt.py")),
    ("udp_burst", "bursts in a chain: --frames N --rate N", include_str!("../profiles/udp_burst.py")),
];

/// The file to run: the user's, or a copy in `folder` of the lab's profile of that name.
pub(crate) fn resolve(path: &Path, folder: &Path) -> Result<PathBuf, ProfileError> {
    let unreadable = |reason: String| ProfileError::Unreadable { path: path.to_owned(), reason };
    if path.is_file() {
        std::fs::File::open(path).map_err(|reason| unreadable(reason.to_string()))?;
        return std::path::absolute(path).map_err(|reason| unreadable(reason.to_string()));
    }
    let name = path.to_string_lossy();
    let Some((_, _, text)) = PROFILES.iter().find(|(known, _, _)| *known == name) else {
        let known = PROFILES.iter().map(|(known, _, _)| *known).collect();
        let is_name = path.components().count() == 1 && path.extension().is_none();
        return Err(match path.exists() {
            true => unreadable("is no file".to_owned()),
            false if is_name => ProfileError::NoProfile { wrong: name.into_owned(), known },
            false => unreadable("there is no such file".to_owned()),
        });
    };
    // A folder of its own: the profile's imports must not meet the shim's files.
    let copy = folder.join("profile");
    std::fs::create_dir_all(&copy).map_err(|reason| unreadable(reason.to_string()))?;
    let copy = copy.join(format!("{name}.py"));
    std::fs::write(&copy, text).map_err(|reason| unreadable(reason.to_string()))?;
    Ok(copy)
}
