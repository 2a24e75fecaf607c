//! Messages: `ip_source_and_port_range_check_add_del` and its like of interfaces.

use shoal_interface::SwIfIndex;
use shoal_message::{InterfaceIndex, Message, Prefix, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};
use shoal_wire::IpPrefix;

use crate::{PortRange, RangeCheck, RangeError, Setting};

/// Messages that VPP has in `ip.api`.
pub static API: ApiPart = ApiPart {
    file: "ip",
    folder: Folder::Core,
    version: "3.2.0",
    messages: &[
        ApiMessage::request::<IpSourceAndPortRangeCheckAddDel>(),
        ApiMessage::request::<IpSourceAndPortRangeCheckInterfaceAddDel>(),
    ],
};

/// Ranges in a message.
const MOST: usize = 32;

/// Says to which ports hosts of a prefix may speak, or that they may no longer.
#[derive(Message)]
#[message(request)]
pub struct IpSourceAndPortRangeCheckAddDel {
    /// Whether they may.
    #[preset("true")]
    pub is_add: bool,
    /// The hosts.
    pub prefix: Prefix,
    /// How many ranges there are.
    pub number_of_ranges: u8,
    /// Where each begins.
    pub low_ports: [u16; MOST],
    /// The last port of each.
    pub high_ports: [u16; MOST],
    /// The table.
    pub vrf_id: u32,
}

/// Sets by which tables packets of an interface are checked; all bits set for no table.
#[derive(Message)]
#[message(request)]
pub struct IpSourceAndPortRangeCheckInterfaceAddDel {
    /// Whether they are.
    #[preset("true")]
    pub is_add: bool,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Of TCP that the interface sends.
    pub tcp_in_vrf_id: u32,
    /// Of TCP that it receives.
    pub tcp_out_vrf_id: u32,
    /// Of UDP that it sends.
    pub udp_in_vrf_id: u32,
    /// Of UDP that it receives.
    pub udp_out_vrf_id: u32,
}

fn retval(error: &RangeError) -> Retval {
    match error {
        RangeError::TooMany(_) => Retval::EXCEEDED_NUMBER_OF_RANGES_CAPACITY,
        RangeError::Interface(_) => Retval::INVALID_SW_IF_INDEX,
        RangeError::DefaultTable
        | RangeError::Range(_)
        | RangeError::NoRange
        | RangeError::NotThere { .. }
        | RangeError::NoTables
        | RangeError::NotChecked(_)
        | RangeError::Fib(_) => Retval::INVALID_VALUE,
    }
}

impl Request for IpSourceAndPortRangeCheckAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let check = call.get::<RangeCheck>().map_err(|_| Retval::UNSPECIFIED)?;
        let n = usize::from(self.number_of_ranges);
        if n > MOST {
            return Err(Retval::EXCEEDED_NUMBER_OF_RANGES_CAPACITY);
        }
        let prefix =
            IpPrefix::new(self.prefix.address, self.prefix.len).map_err(|_| Retval::INVALID_PREFIX_LENGTH)?;
        let prefix = prefix.ip4().ok_or(Retval::UNIMPLEMENTED)?;
        let both = self.low_ports.into_iter().zip(self.high_ports).take(n);
        let ranges: Vec<PortRange> = both.map(|(low, high)| PortRange { low, high }).collect();
        let done = if self.is_add {
            check.add(self.vrf_id, prefix, &ranges)
        } else {
            check.remove(self.vrf_id, prefix, &ranges)
        };
        match done {
            // As in VPP, what is not there is gone.
            Ok(()) | Err(RangeError::NotThere { .. }) => Ok(()),
            Err(e) => Err(retval(&e)),
        }
    }
}

impl Request for IpSourceAndPortRangeCheckInterfaceAddDel {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let check = call.get::<RangeCheck>().map_err(|_| Retval::UNSPECIFIED)?;
        let said = |id: u32| (id != u32::MAX).then_some(id);
        let setting = Setting {
            tcp_in: said(self.tcp_in_vrf_id),
            tcp_out: said(self.tcp_out_vrf_id),
            udp_in: said(self.udp_in_vrf_id),
            udp_out: said(self.udp_out_vrf_id),
        };
        let interface = SwIfIndex(self.sw_if_index.0);
        let done =
            if self.is_add { check.enable(interface, setting) } else { check.disable(interface, setting) };
        match done {
            // As in VPP, what is not checked is no mistake.
            Ok(()) | Err(RangeError::NotChecked(_) | RangeError::NoTables) => Ok(()),
            Err(e) => Err(retval(&e)),
        }
    }
}
