//! Packets and bytes for a watt-hour, and CPU time for a million packets.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// Names and units of the rows that are made of these figures.
pub mod metric {
    /// Delivered packets a watt-hour.
    pub const PPWH: (&str, &str) = ("PPWh", "packets/Wh");
    /// Delivered bytes (layer 2, with FCS) a watt-hour.
    pub const BPWH: (&str, &str) = ("BPWh", "bytes/Wh");
    /// As `PPWH`, of the energy above idle.
    pub const PPWH_ABOVE_IDLE: (&str, &str) = ("PPWh_above_idle", "packets/Wh");
    /// As `BPWH`, of the energy above idle.
    pub const BPWH_ABOVE_IDLE: (&str, &str) = ("BPWh_above_idle", "bytes/Wh");
    /// Energy of the send window.
    pub const ENERGY: (&str, &str) = ("energy", "Wh");
    /// Mean power of the send window.
    pub const POWER: (&str, &str) = ("power", "W");
    /// CPU time; not energy.
    pub const CPU_SECONDS: (&str, &str) = ("cpu_seconds_per_million_packets", "s/Mpkt");
}

/// What was delivered for the energy taken, in the send window only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Delivered packets a watt-hour.
    pub ppwh: Option<f64>,
    /// Delivered bytes a watt-hour (layer 2, FCS included).
    pub bpwh: Option<f64>,
    /// Watt-hours above idle.
    pub wh_above_idle: Option<f64>,
    /// Delivered packets a watt-hour above idle.
    pub ppwh_above_idle: Option<f64>,
    /// Delivered bytes a watt-hour above idle.
    pub bpwh_above_idle: Option<f64>,
}

impl Efficiency {
    /// Of `packets` and `bytes` that arrived while `reading` was made. Without a figure, or with one that is not above 0,
    /// fields are absent: never infinite.
    pub fn of(reading: &Reading, idle: Option<&Reading>, packets: u64, bytes: u64) -> Self {
        let above = idle.and_then(|idle| reading.above_idle(idle));
        Efficiency {
            ppwh: share(packets, reading.wh),
            bpwh: share(bytes, reading.wh),
            wh_above_idle: above,
            ppwh_above_idle: share(packets, above),
            bpwh_above_idle: share(bytes, above),
        }
    }
}

fn share(delivered: u64, wh: Option<f64>) -> Option<f64> {
    wh.filter(|wh| wh.is_finite() && *wh > 0.0).map(|wh| delivered as f64 / wh)
}

/// CPU seconds a million delivered packets, of `cpu_microseconds` that the device used. None if nothing was delivered.
pub fn cpu_seconds_per_million(cpu_microseconds: u64, packets: u64) -> Option<f64> {
    // Microseconds a packet are seconds a million packets.
    (packets > 0).then(|| cpu_microseconds as f64 / packets as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wh: f64, seconds: f64) -> Reading {
        let watts = Some(wh * 3600.0 / seconds);
        Reading {
            source: "rapl".into(),
            scope: "a".into(),
            wh: Some(wh),
            watts,
            seconds,
            ..Reading::default()
        }
    }

    #[test]
    fn packets_and_bytes_are_divided_by_the_energy_and_by_what_is_above_idle() {
        let idle = reading(10.0, 240.0);
        let found = Efficiency::of(&reading(6.0, 120.0), Some(&idle), 600, 38_400);
        assert_eq!((found.ppwh, found.bpwh), (Some(100.0), Some(6_400.0)));
        assert!((found.wh_above_idle.unwrap() - 1.0).abs() < 1e-12, "idle is scaled to the same time");
        assert!((found.ppwh_above_idle.unwrap() - 600.0).abs() < 1e-9);
    }

    #[test]
    fn what_rounds_to_idle_is_not_divided_by() {
        // 0.3 in one sum and 0.1 + 0.2 in another: apart by the last bit.
        for seconds in [3.0, 0.1, 0.3, 7.0 / 3.0] {
            let taken = reading(0.1 + 0.2, seconds);
            let idle = reading(0.3, seconds);
            let found = Efficiency::of(&taken, Some(&idle), 600, 38_400);
            assert_eq!((found.wh_above_idle, found.ppwh_above_idle), (Some(0.0), None), "{seconds}");
        }
    }

    #[test]
    fn no_energy_no_efficiency() {
        for wh in [0.0, -1.0, f64::NAN] {
            assert_eq!(Efficiency::of(&reading(wh, 1.0), None, 600, 1).ppwh, None, "{wh}");
        }
        assert_eq!(Efficiency::of(&Reading::not_measured(1.0), None, 600, 1), Efficiency::default());
    }

    #[test]
    fn wall_and_package_are_not_subtracted_from_each_other() {
        let wall = Reading { scope: "wall".into(), ..reading(10.0, 240.0) };
        assert_eq!(Efficiency::of(&reading(6.0, 120.0), Some(&wall), 600, 1).wh_above_idle, None);
    }

    #[test]
    fn cpu_time_is_per_million_packets() {
        assert_eq!(cpu_seconds_per_million(2_000_000, 4_000_000), Some(0.5));
        assert_eq!(cpu_seconds_per_million(1, 0), None);
    }
}
