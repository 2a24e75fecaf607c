//! `add_del_ip_punt_redirect_v2`: several ways of punted packets.

use shoal_fib::Fib;
use shoal_fib::api::{family_of, from_path};
use shoal_message::{AddressFamily, Count, FibPath, InterfaceIndex, Message, Retval, Value};
use shoal_module::api::{Call, Dump, Request};

use super::redirect::{number, redirects, rx_of, set};

/// Ways of punted packets.
#[derive(Value, Clone, Debug, PartialEq)]
#[value(name = "punt_redirect_v2")]
pub struct PuntRedirectV2 {
    /// The interface they came in by; all bits set for those without an entry of their own.
    #[preset(4294967295)]
    pub rx_sw_if_index: InterfaceIndex,
    pub af: AddressFamily,
    pub n_paths: Count<u32>,
    /// Where they go.
    #[counted_by(n_paths)]
    pub paths: Vec<FibPath>,
}

/// Sends punted packets elsewhere than to the host, or no more.
#[derive(Message)]
#[message(request, name = "add_del_ip_punt_redirect_v2")]
pub struct AddDelIpPuntRedirectV2 {
    /// Whether they are sent elsewhere.
    #[preset("true")]
    pub is_add: bool,
    pub punt: PuntRedirectV2,
}

/// Asks where punted packets are sent.
#[derive(Message)]
#[message(request, name = "ip_punt_redirect_v2_dump", details = IpPuntRedirectV2Details)]
pub struct IpPuntRedirectV2Dump {
    /// The interface they came in by; all bits set for all.
    pub sw_if_index: InterfaceIndex,
    pub af: AddressFamily,
}

/// Where punted packets are sent.
#[derive(Message)]
#[message(reply, name = "ip_punt_redirect_v2_details")]
pub struct IpPuntRedirectV2Details {
    pub punt: PuntRedirectV2,
}

impl Request for AddDelIpPuntRedirectV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        let (family, rx) = (family_of(self.punt.af), rx_of(call, self.punt.rx_sw_if_index)?);
        set(call, family, rx, self.is_add.then_some(&self.punt.paths))
    }
}

impl Dump for IpPuntRedirectV2Dump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpPuntRedirectV2Details> + 'static {
        let (af, family) = (self.af, family_of(self.af));
        let all = redirects(call, family, self.sw_if_index);
        let fib = call.get::<Fib>().ok();
        all.into_iter().filter_map(move |one| {
            let fib = fib.as_ref()?;
            let paths = one.paths.iter().map(|path| from_path(fib, family, None, path)).collect();
            let rx_sw_if_index = number(one.rx);
            let punt = PuntRedirectV2 { rx_sw_if_index, af, n_paths: Count::default(), paths };
            Some(IpPuntRedirectV2Details { punt })
        })
    }
}
