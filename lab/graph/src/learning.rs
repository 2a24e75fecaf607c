//! How fast a bridge domain learns: a million stations that it does not know each send one frame, between frames of stations
//! that it knows. None may be lost.

use std::time::Instant;

use shoal_bridge::Bridges;
use shoal_pg::{Pg, Source, StreamSpec};

use crate::Result;
use crate::router::Router;
use crate::scenario;
use crate::switched;
use crate::tables::Rows;

/// Stations that are new.
pub const STATIONS: u32 = 1_000_000;
/// Packets of a frame.
const FRAME: usize = 256;

/// Measures the rate at which stations are learned.
///
/// # Errors
/// One of them was not learned, or a frame was lost.
pub fn learn(rows: &mut Rows, stations: u32, rounds: usize) -> Result<()> {
    let frames = switched::newcomers(stations);
    let mut rates = Vec::new();
    for _ in 0..rounds {
        rates.push(one(frames.clone(), stations)?);
    }
    rows.add("learn-macs", "MACs/s", &rates);
    Ok(())
}

fn one(frames: Vec<Vec<u8>>, stations: u32) -> Result<f64> {
    // Its own stream is the traffic of known stations.
    let router = Router::new(&scenario::find("l2-bridge")?)?;
    let (pg, bridges) = (router.control.get::<Pg>()?, router.control.get::<Bridges>()?);
    let before = bridges.learned().learned;
    pg.add_stream(StreamSpec {
        limit: None,
        maxframe: FRAME,
        interface: Some(router.input()),
        ..StreamSpec::new("newcomers", Source::Packets(frames))
    })?;
    pg.enable("newcomers")?;
    let start = Instant::now();
    for _ in 0..2 * stations as usize / FRAME + 64 {
        router.graph.round();
        if bridges.learned().learned - before == stations {
            break;
        }
    }
    let rate = f64::from(stations) / start.elapsed().as_secs_f64();
    router.verify_sent()?;
    match bridges.learned().learned - before {
        learned if learned == stations => Ok(rate),
        learned => Err(format!("{learned} of {stations} stations were learned").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stations_are_learned_and_no_frame_is_lost() {
        let rate = one(switched::newcomers(10_000), 10_000).unwrap();
        assert!(rate > 0.0);
    }
}
