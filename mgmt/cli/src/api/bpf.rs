//! `bpf_trace_filter_set`: the expression of the filter function `bpf_trace_filter`.

use shoal_message::{Message, Retval};
use shoal_module::api::{ApiMessage, ApiPart, Call, Folder, Request};

use crate::commands::trace_filter::Bpf;
use crate::filter::Optimize;

/// Messages that VPP has in `bpf_trace_filter.api`.
pub static BPF: ApiPart = ApiPart {
    file: "bpf_trace_filter",
    folder: Folder::Plugins,
    version: "0.1.0",
    messages: &[ApiMessage::request::<BpfTraceFilterSet>(), ApiMessage::request::<BpfTraceFilterSetV2>()],
};

/// Sets the expression or takes it away.
#[derive(Message)]
#[message(request)]
pub struct BpfTraceFilterSet {
    #[preset("true")]
    is_add: bool,
    /// The expression, as tcpdump takes it.
    filter: String,
}

/// Sets the expression or takes it away.
#[derive(Message)]
#[message(request, name = "bpf_trace_filter_set_v2")]
pub struct BpfTraceFilterSetV2 {
    #[preset("true")]
    is_add: bool,
    /// Whether libpcap makes the program shorter.
    #[preset("true")]
    optimize: bool,
    /// The expression, as tcpdump takes it.
    filter: String,
}

fn set(call: &Call, is_add: bool, filter: &str, optimize: Optimize) -> Result<(), Retval> {
    let bpf = call.get::<Bpf>().map_err(|_| Retval::UNSPECIFIED)?;
    if is_add {
        return bpf.set(filter, optimize).map_err(|_| Retval::INVALID_ARGUMENT);
    }
    bpf.clear();
    Ok(())
}

impl Request for BpfTraceFilterSet {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        set(call, self.is_add, &self.filter, Optimize::Yes)
    }
}

impl Request for BpfTraceFilterSetV2 {
    fn handle(self, call: &Call) -> Result<(), Retval> {
        set(call, self.is_add, &self.filter, if self.optimize { Optimize::Yes } else { Optimize::No })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::Router;

    #[test]
    fn declared_messages_are_those_of_vpp() {
        shoal_testkit::api::same_as_vpp(&[&BPF]);
    }

    #[test]
    fn an_expression_is_set_refused_or_taken_away() {
        let router = Router::new();
        let call = Call::local(&router.control);
        let set = |is_add, filter: &str| BpfTraceFilterSet { is_add, filter: filter.into() }.handle(&call);
        assert_eq!(set(true, "tpc"), Err(Retval::INVALID_ARGUMENT));
        assert_eq!(set(true, "tcp"), Ok(()));
        assert!(router.run("show bpf trace filter").starts_with("(000)"));
        assert_eq!(set(false, ""), Ok(()));
        let filter = "udp".to_owned();
        BpfTraceFilterSetV2 { is_add: true, optimize: false, filter }.handle(&call).unwrap();
        assert!(router.run("show bpf trace filter").starts_with("(000)"));
    }
}
