//! Loads a profile: has Python run it for one side, and reads its streams.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use shoal_lab_plan::Side;

use crate::child::{last, run};
use crate::format::StlStream;
use crate::shim::Shim;
use crate::{Fault, Limits, ProfileError, shipped};

/// How a profile is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// `size=64,vm=var2` or `--size 64 --vm var2`; empty for none.
    pub tunables: String,
    /// The Python to run; its Scapy is used where a profile needs it.
    pub python: PathBuf,
    /// What it may use.
    pub limits: Limits,
    /// Seeds Python's `random`, so that a profile that rolls dice rolls the same ones each time.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Load { tunables: String::new(), python: "python3".into(), limits: Limits::default(), seed: 1 }
    }
}

/// A profile's streams for one side, as it describes them.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// In the profile's order.
    pub streams: Vec<StlStream>,
    /// The same as JSON.
    pub(crate) json: Vec<Value>,
    /// What should be reported about it: the network was not shut off, a tunable fits nowhere.
    pub notes: Vec<String>,
    /// What the profile printed.
    pub printed: String,
    /// `own`, or Scapy's version: who built the frames.
    pub layers: String,
}

impl Loaded {
    /// The streams in the form of TRex's `STLProfile.to_json()`: for comparing with that, or with another run.
    pub fn to_json(&self) -> Value {
        Value::Array(self.json.clone())
    }

    /// Reads streams from such JSON, TRex's or ours.
    ///
    /// # Errors
    ///
    /// If it is no list of streams.
    pub fn from_json(path: &Path, text: &str) -> Result<Loaded, ProfileError> {
        let json: Vec<Value> =
            serde_json::from_str(text).map_err(|reason| unreadable(path, text, &reason))?;
        Loaded::of(path, json, text)
    }

    fn of(path: &Path, json: Vec<Value>, text: &str) -> Result<Loaded, ProfileError> {
        let streams = json
            .iter()
            .map(StlStream::deserialize)
            .collect::<Result<_, _>>()
            .map_err(|reason| unreadable(path, text, &reason))?;
        let mut plain = json;
        for stream in plain.iter_mut().filter_map(Value::as_object_mut) {
            stream.remove("shoal");
        }
        let (notes, printed) = (Vec::new(), String::new());
        Ok(Loaded { streams, json: plain, notes, printed, layers: "own".to_owned() })
    }
}

#[derive(Deserialize)]
struct Answer {
    error: Option<Fault>,
    #[serde(default)]
    streams: Vec<Value>,
    #[serde(default)]
    layers: String,
    #[serde(default)]
    network: String,
    #[serde(default)]
    swallowed: Vec<String>,
}

/// Runs the profile at `path`, or one of the lab's own by its name, for frames sent from `side`.
///
/// TRex's direction and port are 0 for the left side, 1 for the right.
///
/// # Errors
///
/// [`ProfileError`] says what is wrong with the profile, and where.
pub fn load(path: &Path, side: Side, how: &Load) -> Result<Loaded, ProfileError> {
    let shim = Shim::write().map_err(|reason| ProfileError::Unreadable {
        path: std::env::temp_dir(),
        reason: format!("the shim cannot be written there: {reason}"),
    })?;
    let profile = shipped::resolve(path, shim.folder())?;
    let request = json!({
        "path": profile,
        "tunables": how.tunables,
        "direction": side.index(),
        "port_id": side.index(),
        "seed": how.seed,
        "memory": how.limits.memory,
        "seconds": how.limits.time.as_secs() + 1,
    });
    let said = run(&how.python, &shim.program(), path, request.to_string().as_bytes(), how.limits)?;
    let text = String::from_utf8_lossy(&said.answer);
    let answer: Answer = serde_json::from_str(&text).map_err(|reason| unreadable(path, &text, &reason))?;
    if let Some(mut fault) = answer.error {
        // The name that the user knows it by, not that of the lab's copy.
        if fault.file == profile {
            path.clone_into(&mut fault.file);
        }
        let printed = last(&said.printed);
        if fault.kind == crate::FaultKind::Exit && !printed.is_empty() {
            fault.message = format!("{}, saying: {printed}", fault.message);
        }
        return Err(fault.into());
    }
    let mut loaded = Loaded::of(path, answer.streams, &text)?;
    loaded.layers = answer.layers;
    loaded.printed = said.printed;
    if !answer.network.is_empty() {
        loaded
            .notes
            .push(format!("the profile ran with this machine's network in reach: {}", answer.network));
    }
    for name in answer.swallowed {
        loaded
            .notes
            .push(format!("tunable {name} is none that get_streams names; it went among its **kwargs"));
    }
    Ok(loaded)
}

fn unreadable(path: &Path, text: &str, reason: &serde_json::Error) -> ProfileError {
    let start = text.chars().take(80).collect();
    ProfileError::Answer { path: path.to_owned(), reason: reason.to_string(), start }
}
