//! Raritan PX3 power strips by SNMP v2c (PDU2-MIB, enterprise 13742).

use std::fmt;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use snmp2::{Oid, SyncSession, Value};

use crate::EnergyError;
use crate::source::{Look, Probe};

/// `raritan.pdu2`.
const PDU2: [u64; 8] = [1, 3, 6, 1, 4, 1, 13742, 6];
/// Sensor types of PDU2-MIB.
const ACTIVE_POWER: u64 = 5;
const ACTIVE_ENERGY: u64 = 8;
/// UDP loses datagrams: each question is asked this often.
const TRIES: u32 = 2;

/// Which sensor of which strip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raritan {
    /// Host and port: `192.0.2.7:161`.
    pub agent: String,
    /// The read community of SNMP v2c, sent in clear.
    pub community: String,
    /// Strip, from 1.
    pub pdu: u32,
    /// The socket that the device is plugged into, or the whole strip.
    pub at: OutletOrInlet,
    /// Milliseconds for one try.
    #[serde(default = "try_ms")]
    pub try_ms: u64,
}

const fn try_ms() -> u64 {
    400
}

/// A socket, or the strip's own supply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutletOrInlet {
    /// A socket, from 1.
    Outlet(u32),
    /// A supply, from 1.
    Inlet(u32),
}

impl fmt::Display for OutletOrInlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutletOrInlet::Outlet(n) => write!(f, "outlet {n}"),
            OutletOrInlet::Inlet(n) => write!(f, "inlet {n}"),
        }
    }
}

impl OutletOrInlet {
    /// Tables of values and of decimal digits, and the number within them.
    const fn tables(self) -> ([u64; 5], [u64; 5], u32) {
        match self {
            // measurementsOutletSensorValue, outletSensorDecimalDigits
            OutletOrInlet::Outlet(n) => ([5, 4, 3, 1, 4], [3, 5, 4, 1, 7], n),
            // measurementsInletSensorValue, inletSensorDecimalDigits
            OutletOrInlet::Inlet(n) => ([5, 2, 3, 1, 4], [3, 3, 4, 1, 7], n),
        }
    }
}

/// Asks one sensor.
pub struct RaritanProbe {
    at: Raritan,
    session: SyncSession,
    power_scale: Option<f64>,
    energy_scale: Option<f64>,
}

impl RaritanProbe {
    /// Makes a socket; asks nothing yet.
    pub fn open(at: &Raritan) -> Result<Self, EnergyError> {
        let timeout = Some(Duration::from_millis(at.try_ms.max(1)));
        let session = SyncSession::new_v2c(at.agent.as_str(), at.community.as_bytes(), timeout, 1)
            .map_err(|e| EnergyError::Agent { agent: at.agent.clone(), reason: e.to_string() })?;
        Ok(RaritanProbe { at: at.clone(), session, power_scale: None, energy_scale: None })
    }

    fn oid(&self, table: &[u64; 5], sensor: u64) -> Vec<u64> {
        let (_, _, number) = self.at.at.tables();
        let mut oid = PDU2.to_vec();
        oid.extend(table);
        oid.extend([u64::from(self.at.pdu), u64::from(number), sensor]);
        oid
    }

    fn value(&mut self, sensor: u64) -> Result<f64, EnergyError> {
        let (values, digits, _) = self.at.at.tables();
        let known = if sensor == ACTIVE_POWER { self.power_scale } else { self.energy_scale };
        let scale = if let Some(scale) = known {
            scale
        } else {
            let digits = self.get(&self.oid(&digits, sensor))?;
            let scale = 10_f64.powi(-(digits.clamp(0, 9) as i32));
            if sensor == ACTIVE_POWER {
                self.power_scale = Some(scale);
            } else {
                self.energy_scale = Some(scale);
            }
            scale
        };
        Ok(self.get(&self.oid(&values, sensor))? as f64 * scale)
    }

    fn get(&mut self, parts: &[u64]) -> Result<i64, EnergyError> {
        let written = parts.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
        let no_number =
            |what: String| EnergyError::NoNumber { agent: self.at.agent.clone(), oid: written.clone(), what };
        let Ok(oid) = Oid::from(parts) else { return Err(no_number("not an object's name".into())) };
        let began = Instant::now();
        let mut last = None;
        for _ in 0..TRIES {
            match self.session.get(&oid) {
                Err(snmp2::Error::Receive | snmp2::Error::Send) => {}
                Err(other) => last = Some(format!("an answer that is no SNMP response ({other:?})")),
                Ok(response) if response.error_status != 0 => {
                    return Err(no_number(format!("error status {}", response.error_status)));
                }
                Ok(response) => {
                    let mut bindings = response.varbinds;
                    return match bindings.next() {
                        Some((name, value)) if name == oid => number(&value).ok_or_else(|| {
                            let what: String = format!("{value:?}").chars().take(60).collect();
                            no_number(what)
                        }),
                        Some((name, _)) => Err(no_number(format!("the answer is about {name}"))),
                        None => Err(no_number("an answer without content".into())),
                    };
                }
            }
        }
        Err(match last {
            Some(what) => no_number(what),
            None => EnergyError::Silent {
                agent: self.at.agent.clone(),
                community: self.at.community.clone(),
                seconds: (began.elapsed().as_secs_f64() * 10.0).round() / 10.0,
            },
        })
    }
}

fn number(value: &Value<'_>) -> Option<i64> {
    match *value {
        Value::Integer(n) => Some(n),
        Value::Counter32(n) | Value::Unsigned32(n) | Value::Timeticks(n) => Some(i64::from(n)),
        Value::Counter64(n) => i64::try_from(n).ok(),
        _ => None,
    }
}

impl Probe for RaritanProbe {
    fn look(&mut self) -> Result<Look, EnergyError> {
        let watts = self.value(ACTIVE_POWER)?;
        if !(0.0..=1e6).contains(&watts) {
            return Err(EnergyError::NotWatts { from: self.at.agent.clone(), text: watts.to_string() });
        }
        Ok(Look::Watts(watts))
    }

    fn counter(&mut self) -> Option<f64> {
        self.value(ACTIVE_ENERGY).ok()
    }

    fn scope(&self) -> String {
        format!("{} of PDU {} (wall)", self.at.at, self.at.pdu)
    }
}
