//! The table of everything this router is made of.

use shoal_config::Plugins;
use shoal_module::Module;
use shoal_module::api::ApiPart;
use shoal_module::config::Section;

/// Whether a module can be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Others rest on it.
    Core,
    /// `plugins { plugin NAME { disable } }` leaves it out.
    Plugin,
    /// It runs only where `plugins { plugin NAME { enable } }` names it.
    Named,
}

use Part::{Core, Named, Plugin};

/// In the order of their start: what a module asks for stands above it.
static TABLE: &[(Part, &Module)] = &[
    (Core, &crate::logging::MODULE),
    (Core, &shoal_cli::commands::MODULE),
    (Core, &shoal_stats::MODULE),
    (Core, &shoal_running::MODULE),
    (Core, &shoal_commit::MODULE),
    (Plugin, &shoal_metrics::MODULE),
    (Plugin, &shoal_perfmon::MODULE),
    (Core, &shoal_interface::MODULE),
    (Core, &shoal_adj::MODULE),
    (Core, &shoal_ethernet::MODULE),
    (Core, &shoal_l2::MODULE),
    (Core, &shoal_fib::MODULE),
    (Core, &shoal_ip4::MODULE),
    (Core, &shoal_ip6::MODULE),
    (Core, &shoal_ip_interface::MODULE),
    (Core, &shoal_neighbor::MODULE),
    (Core, &shoal_arp::MODULE),
    (Core, &shoal_icmp::MODULE),
    (Core, &shoal_ip6_nd::MODULE),
    (Named, &shoal_ip6_nd::autoremove::MODULE),
    (Core, &shoal_bridge::MODULE),
    (Core, &shoal_span::MODULE),
    (Core, &shoal_pipe::MODULE),
    (Plugin, &shoal_l3xc::MODULE),
    (Core, &shoal_mfib::MODULE),
    (Core, &shoal_reassembly::MODULE),
    (Core, &shoal_path_mtu::MODULE),
    (Core, &shoal_punt::MODULE),
    (Core, &shoal_handoff::MODULE),
    (Core, &shoal_bond::MODULE),
    (Plugin, &shoal_lacp::MODULE),
    (Plugin, &shoal_lldp::MODULE),
    (Plugin, &shoal_cdp::MODULE),
    (Plugin, &shoal_igmp::MODULE),
    (Plugin, &shoal_lcp::MODULE),
    (Core, &shoal_fpm::MODULE),
    (Core, &shoal_bfd::MODULE),
    (Core, &shoal_bfd_dataplane::MODULE),
    (Core, &shoal_syslog::MODULE),
    (Core, &shoal_ipfix::MODULE),
    (Core, &shoal_rule::MODULE),
    (Plugin, &shoal_urpf::MODULE),
    (Plugin, &shoal_abf::MODULE),
    (Plugin, &shoal_mss_clamp::MODULE),
    (Plugin, &shoal_source_limit::MODULE),
    (Plugin, &shoal_nat44_ed::MODULE),
    (Plugin, &shoal_nat44_ei::MODULE),
    (Plugin, &shoal_dhcp::MODULE),
    (Plugin, &shoal_nat66::MODULE),
    (Plugin, &shoal_nat64::MODULE),
    (Plugin, &shoal_det44::MODULE),
    (Plugin, &shoal_npt66::MODULE),
    (Plugin, &shoal_pnat::MODULE),
    (Plugin, &shoal_map::MODULE),
    (Plugin, &shoal_dslite::MODULE),
    (Plugin, &shoal_lb::MODULE),
    (Plugin, &shoal_cnat::MODULE),
    (Plugin, &shoal_vrrp::MODULE),
    // It knows all kinds of NAT above.
    (Plugin, &shoal_session_sync::MODULE),
    (Core, &shoal_container_proxy::MODULE),
    (Core, &shoal_range_check::MODULE),
    (Core, &shoal_gso::MODULE),
    (Core, &shoal_pcap_trace::MODULE),
    (Plugin, &shoal_ping::MODULE),
    (Plugin, &shoal_arping::MODULE),
    (Plugin, &shoal_pg::MODULE),
    (Plugin, &shoal_af_packet::MODULE),
    (Plugin, &shoal_af_xdp::MODULE),
    (Plugin, &shoal_tap::MODULE),
    (Plugin, &shoal_vhost_user::MODULE),
    (Plugin, &shoal_memif::MODULE),
    // The last feature of the output arcs.
    (Core, &shoal_dvr::MODULE),
    // It composes nodes of the modules above.
    (Core, &shoal_superpaths::MODULE),
    // Loaded plugins name nodes and arcs of all modules.
    (Core, &shoal_plugin_host::MODULE),
    // Clients connect when all is there.
    (Core, &shoal_api::MODULE),
];

/// Every module, whatever the configuration says: their sections are known even when they do not run.
pub fn all() -> impl Iterator<Item = &'static Module> {
    TABLE.iter().map(|(_, module)| *module)
}

/// The reference of all commands, in Markdown.
///
/// # Errors
/// Commands of two modules do not fit together.
pub fn reference() -> Result<String, shoal_cli::TableError> {
    let types = all().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
    Ok(shoal_cli::Cli::new(all().flat_map(|m| m.commands), types)?.reference())
}

/// The sections of the start-up file that modules read.
pub fn sections() -> Vec<&'static Section> {
    all().flat_map(|m| m.sections).collect()
}

/// The messages of all modules.
pub fn messages() -> impl Iterator<Item = &'static ApiPart> {
    all().flat_map(|m| m.api).copied()
}

/// The modules that run.
pub fn enabled(plugins: &Plugins) -> Vec<&'static Module> {
    let runs = |part: Part, module: &Module| match part {
        Core => true,
        Plugin => plugins.enabled(module.name),
        Named => plugins.named(module.name) == Some(true),
    };
    TABLE.iter().filter(|(part, module)| runs(*part, module)).map(|(_, module)| *module).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once() {
        let mut names: Vec<_> = all().map(|m| m.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(all().all(|m| !m.name.is_empty() && !m.description.is_empty()));
    }

    #[test]
    fn the_commands_of_all_modules_fit_together() {
        let commands = all().flat_map(|m| m.commands);
        let types = all().flat_map(|m| m.arg_types).chain(shoal_module::cli::WIRE);
        shoal_cli::Cli::new(commands, types).unwrap();
    }

    #[test]
    fn all_messages_are_those_of_vpp() {
        let parts: Vec<_> = std::iter::once(&shoal_api::memclnt::API).chain(messages()).collect();
        shoal_testkit::api::same_as_vpp(&parts);
        shoal_api::Table::new(messages()).unwrap();
    }

    #[test]
    fn the_files_that_clients_load_are_what_is_declared() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |path: std::path::PathBuf| std::fs::read_to_string(&path).unwrap_or_default();
        let files = shoal_api::reference::files(messages()).unwrap();
        for (path, text) in &files {
            assert!(read(root.join("share/api").join(path)) == *text, "{}: run `make gen`", path.display());
        }
        let there =
            ["core", "plugins"].map(|f| std::fs::read_dir(root.join("share/api").join(f)).unwrap().count());
        assert_eq!(there.iter().sum::<usize>(), files.len(), "a file too many in share/api: run `make gen`");
        let page = shoal_api::reference::page(messages()).unwrap();
        assert!(read(root.join("docs/reference/api.md")) == page, "docs/reference/api.md: run `make gen`");
    }

    #[test]
    fn what_answers_is_declared_as_an_answer() {
        use shoal_message::{Header, Reply};
        let all: Vec<_> = messages().flat_map(|part| part.messages).map(|m| m.described).collect();
        let services = all.iter().filter_map(|m| m.service);
        let answers = services.flat_map(|s| match s.reply {
            Reply::Message(name) => [Some(name), s.details],
            Reply::Done | Reply::None => [None, s.details],
        });
        for name in answers.flatten() {
            let declared = all.iter().find(|m| m.name == name);
            let header = declared.unwrap_or_else(|| panic!("{name} is not declared")).header;
            assert!(matches!(header, Header::Reply | Header::Indexed), "{name} is a {header:?}");
        }
    }

    #[test]
    fn core_modules_cannot_be_disabled() {
        let none = Plugins { default: Some(false), ..Plugins::default() };
        let core = TABLE.iter().filter(|(part, _)| *part == Core).count();
        assert_eq!(enabled(&none).len(), core);
        let named = TABLE.iter().filter(|(part, _)| *part == Named).count();
        assert_eq!(enabled(&Plugins::default()).len(), TABLE.len() - named);
        let name = ("ip6_dad_autoremove_plugin.so".to_owned(), true);
        let with = Plugins { named: [name].into(), ..Plugins::default() };
        assert_eq!(enabled(&with).len(), TABLE.len() - named + 1);
    }
}
