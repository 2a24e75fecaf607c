//! `show bond`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{Interfaces, SwIfIndex};

use crate::{Bond, Bonds, Mode};

#[derive(Serialize)]
struct ActiveRow {
    interface: String,
    sw_if_index: u32,
    weight: u32,
}

#[derive(Serialize)]
pub(crate) struct Row {
    interface: String,
    sw_if_index: u32,
    mode: &'static str,
    load_balance: &'static str,
    gso: bool,
    id: u32,
    active: Vec<ActiveRow>,
    members: Vec<String>,
}

impl Row {
    fn new(bond: &Bond, interfaces: &Interfaces) -> Row {
        let name = |index: SwIfIndex| interfaces.name(index).unwrap_or_else(|_| "deleted".into());
        let weight = |index| bond.members.iter().find(|m| m.index == index).map_or(0, |member| member.weight);
        let active = |index: &SwIfIndex| ActiveRow {
            interface: name(*index),
            sw_if_index: index.0,
            weight: weight(*index),
        };
        Row {
            interface: name(bond.index),
            sw_if_index: bond.index.0,
            mode: bond.how.mode.word(),
            load_balance: bond.how.balance.word(),
            gso: bond.how.gso,
            id: bond.id,
            active: bond.active.iter().map(active).collect(),
            members: bond.members.iter().map(|member| name(member.index)).collect(),
        }
    }
}

fn rows(bonds: &Bonds, interfaces: &Interfaces) -> Vec<Row> {
    bonds.list().iter().map(|bond| Row::new(bond, interfaces)).collect()
}

/// A line for each bond.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Brief(Vec<Row>);

impl Brief {
    pub fn new(bonds: &Bonds, interfaces: &Interfaces) -> Brief {
        Brief(rows(bonds, interfaces))
    }
}

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "interface name   sw_if_index  mode          load balance  active members members")?;
        self.0.iter().try_for_each(|row| {
            let Row { interface, sw_if_index, mode, load_balance, active, members, .. } = row;
            let (active, members) = (active.len(), members.len());
            writeln!(
                f,
                "{interface:<16} {sw_if_index:<12} {mode:<13} {load_balance:<13} {active:<14} {members}"
            )
        })
    }
}

/// All of each bond.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Details(Vec<Row>);

impl Details {
    pub fn new(bonds: &Bonds, interfaces: &Interfaces) -> Details {
        Details(rows(bonds, interfaces))
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            let Row { interface, sw_if_index, mode, load_balance, gso, id, active, members } = row;
            writeln!(f, "{interface}\n  mode: {mode}\n  load balance: {load_balance}")?;
            if *gso {
                writeln!(f, "  gso enable")?;
            }
            writeln!(f, "  number of active members: {}", active.len())?;
            for ActiveRow { interface, sw_if_index, weight } in active {
                writeln!(f, "    {interface}")?;
                if *mode == Mode::ActiveBackup.word() {
                    writeln!(f, "      weight: {weight}, is_local_numa: 1, sw_if_index: {sw_if_index}")?;
                }
            }
            writeln!(f, "  number of members: {}", members.len())?;
            members.iter().try_for_each(|member| writeln!(f, "    {member}"))?;
            writeln!(f, "  device instance: {id}\n  interface id: {id}")?;
            writeln!(f, "  sw_if_index: {sw_if_index}\n  hw_if_index: {sw_if_index}")?;
        }
        Ok(())
    }
}
