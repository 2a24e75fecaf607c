//! Which published figure stands beside a result of ours.

use shoal_lab_plan::SummaryRow;

use super::{Erratum, Figure, Published};

/// Devices that work alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Vectors of packets in user space: Shoal, FD.io VPP.
    Vector,
    /// The Linux kernel, without NAT.
    Linux,
    /// The Linux kernel's NAT by iptables or nftables.
    LinuxNat,
}

/// The family of a device of the lab, or of a published figure. None if nothing published is like it.
pub fn family_of(dut: &str, scenario: &str) -> Option<Family> {
    let dut = dut.to_lowercase();
    if dut.starts_with("shoal") || dut.contains("vpp") {
        return Some(Family::Vector);
    }
    let linux = dut.contains("linux") || dut.contains("iptables") || dut.contains("nft");
    match (linux, scenario) {
        (true, "snat") => Some(Family::LinuxNat),
        (true, _) => Some(Family::Linux),
        _ => None,
    }
}

/// A published figure beside a result.
#[derive(Clone, Debug)]
pub struct Match<'a> {
    /// The figure.
    pub figure: &'a Figure,
    /// What is odd about it.
    pub errata: Vec<&'a Erratum>,
}

impl Published {
    /// Figures with the family, scenario, frame size, direction, number of workers and kind of figure of `row`.
    pub fn beside(&self, row: &SummaryRow) -> Vec<Match<'_>> {
        let Some(family) = family_of(&row.dut, &row.scenario) else { return Vec::new() };
        let found = self.figures.iter().filter(|f| {
            let (scenario, ip) = scenario_of(&f.scenario);
            family_of(&f.dut, scenario) == Some(family)
                && f.dut != "FD.io VPP vs Linux kernel"
                && scenario == row.scenario
                && (ip == row.ip || ip == "any")
                && same_frame(&f.frame_bytes, &row.frame)
                && f.direction == (if row.direction == "bi" { "bi" } else { "uni" })
                && f.cores == row.workers.to_string()
                && same_metric(f, row)
        });
        found.map(|figure| Match { figure, errata: self.errata_of(figure) }).collect()
    }
}

/// The lab's word for a source's scenario, and its IP version.
pub fn scenario_of(published: &str) -> (&'static str, &'static str) {
    match published {
        p if p.starts_with("SNAT") => ("snat", "4"),
        p if p.starts_with("IPv6 routing") => ("route", "6"),
        p if p.starts_with("IPv4 routing") || p.contains("forwarding") => ("route", "4"),
        p if p.starts_with("L2 xconnect") => ("cross-connect", "any"),
        p if p.starts_with("L2 bridge") => ("bridge", "any"),
        _ => ("", ""),
    }
}

fn same_frame(published: &str, ours: &str) -> bool {
    published == ours || (published == "imix" && ours.starts_with("imix"))
}

fn same_metric(figure: &Figure, row: &SummaryRow) -> bool {
    match row.metric.as_str() {
        "throughput" => {
            matches!(figure.metric.as_str(), "throughput_median" | "forwarding_rate" | "throughput")
        }
        "max_pps" | "ok_pps" | "MRR" | "NDR" | "PDR" => {
            matches!(figure.metric.as_str(), "forwarding_rate" | "throughput_median")
        }
        "dispersion" => figure.metric == "dispersion",
        _ => false,
    }
}
