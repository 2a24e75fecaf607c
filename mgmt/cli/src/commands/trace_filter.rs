//! `set trace filter function`, `set bpf trace filter`: what decides whether a packet is traced.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use shoal_graph::trace::Filter;
use shoal_graph::{FilterFunction, FilterInfo, FilterUse, Graph};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::filter::{self, Optimize};

pub(super) const SET: Command = Command::new(
    "set trace filter function <function:word>",
    "Choose what decides which packets are traced, with `filter`",
    choose,
)
.examples(&["set trace filter function bpf_trace_filter"]);

pub(super) const SHOW: Command =
    Command::new("show trace filter function", "Show what may decide which packets are traced", show)
        .examples(&["show trace filter function"]);

pub(super) const SET_BPF: Command = Command::new(
    "set bpf trace filter <filter:rest-or-quoted>",
    "Set the pcap expression of the filter function `bpf_trace_filter`, or `del`",
    set_bpf,
)
.examples(&["set bpf trace filter {tcp and port 80}", "set bpf trace filter del"])
.doc(
    "The function wants packets that the expression fits; without an expression all. Braces around the expression may \
     be left out.",
);

pub(super) const SHOW_BPF: Command = Command::new(
    "show bpf trace filter",
    "Show the program of the filter function `bpf_trace_filter`",
    show_bpf,
)
.examples(&["show bpf trace filter"]);

/// VPP's function that asks classifiers.
pub(crate) const CLASSIFIER: &str = "vnet_is_packet_traced";

/// The expression of `bpf_trace_filter`.
#[derive(Default)]
pub(crate) struct Bpf(Arc<Mutex<Option<Program>>>);

struct Program {
    wants: Filter,
    image: String,
}

impl Bpf {
    /// Adds the functions that are always there.
    pub(crate) fn install(control: &Control, graph: &Graph) {
        let bpf = control.put(Bpf::default());
        let program = Arc::clone(&bpf.0);
        graph.filters().add(FilterFunction {
            name: "bpf_trace_filter",
            description: "bpf based trace filter",
            priority: 10,
            wants: Arc::new(move |bytes| {
                let program = program.lock().unwrap_or_else(PoisonError::into_inner);
                program.as_ref().is_none_or(|program| (program.wants)(bytes))
            }),
        });
        graph.filters().add(FilterFunction {
            name: CLASSIFIER,
            description: "classifier based filter",
            priority: 50,
            // There is no classifier, so none wants a packet.
            wants: Arc::new(|_| false),
        });
    }

    fn of(control: &Control) -> Result<Rc<Bpf>, CliError> {
        Ok(control.get::<Bpf>()?)
    }

    /// Replaces the expression.
    ///
    /// # Errors
    /// What libpcap says of it.
    pub(crate) fn set(&self, expression: &str, optimize: Optimize) -> Result<(), String> {
        let image = filter::image(expression, optimize)?;
        let wants = filter::compile_with(expression, optimize)?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Program { wants, image });
        Ok(())
    }

    /// Takes the expression away.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn set_bpf(control: &Control, args: &Args) -> Result<Output, CliError> {
    let bpf = Bpf::of(control)?;
    let mut text = args.text("filter").unwrap_or_default().trim();
    if text == "del" {
        bpf.clear();
        return Ok(Output::none());
    }
    while let Some(inner) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        text = inner.trim();
    }
    bpf.set(text, Optimize::Yes).map_err(|error| CliError::argument("filter", error))?;
    Ok(Output::none())
}

fn show_bpf(control: &Control, _: &Args) -> Result<Output, CliError> {
    let bpf = Bpf::of(control)?;
    let program = bpf.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Output::text(
        program
            .as_ref()
            .map_or_else(|| "bpf trace filter is not set\n".to_owned(), |program| program.image.clone()),
    ))
}

fn choose(control: &Control, args: &Args) -> Result<Output, CliError> {
    let name: String = args.get("function")?;
    control.graph()?.filters().select(FilterUse::Trace, &name).map_err(|there| {
        let message = format!("no filter function `{name}', there are: {}", there.join(", "));
        CliError::argument("function", message)
    })?;
    Ok(Output::none())
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let line = |FilterInfo { name, description, priority, selected }| {
        let mark = if selected { "(*) " } else { "    " };
        format!("{mark}name:{name} description: {description} priority: {priority}\n")
    };
    let all = control.graph()?.filters().list(FilterUse::Trace);
    Ok(Output::text(all.into_iter().map(line).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn the_chosen_function_decides_when_a_trace_is_filtered() {
        let router = Router::new();
        let functions = router.run("show trace filter function");
        assert!(
            functions.contains(
                "(*) name:vnet_is_packet_traced description: classifier based filter priority: 50\n"
            )
        );
        router.run("set trace filter function bpf_trace_filter");
        assert!(router.run("show trace filter function").contains("(*) name:bpf_trace_filter"));
        for (expression, packets) in [("{{tcp}}", 0), ("udp", 2), ("{udp and host 10.0.0.1}", 2), ("del", 2)]
        {
            router.run(&format!("set bpf trace filter {expression}"));
            router.run("clear trace");
            router.run("trace add test-input 5 filter");
            router.packets(2);
            assert_eq!(router.run("show trace").matches("Packet ").count(), packets, "{expression}");
        }
        assert!(router.refused("set trace filter function nope").contains("there are: bpf_trace_filter"));
        assert!(router.refused("set bpf trace filter tpc").contains("syntax error"));
    }

    #[test]
    fn the_program_is_shown() {
        let router = Router::new();
        assert_eq!(router.run("show bpf trace filter"), "bpf trace filter is not set\n");
        router.run("set bpf trace filter tcp port 80");
        let text = router.run("show bpf trace filter");
        assert!(text.starts_with("(000) ldh      [12]\n"), "{text}");
    }
}
