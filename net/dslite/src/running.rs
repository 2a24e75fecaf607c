//! What rebuilds it.

use shoal_module::{Control, Phase, Running};

use crate::Dslite;

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(dslite) = running.part::<Dslite>(control) else { return };
    for (what, ends) in [("aftr", dslite.aftr()), ("b4", dslite.b4())] {
        if let Some(ends) = ends {
            let line = format!("dslite set {what}-tunnel-endpoint-address {}", ends.ip6);
            running.line(Phase::Policies, line);
        }
    }
    let mut addresses = dslite.addresses().into_iter().peekable();
    while let Some(first) = addresses.next() {
        let mut last = first;
        while addresses.peek().is_some_and(|next| next.to_bits() == last.to_bits().wrapping_add(1)) {
            last = addresses.next().unwrap_or(last);
        }
        let to = if last == first { String::new() } else { format!(" - {last}") };
        running.line(Phase::Policies, format!("dslite add pool address {first}{to}"));
    }
}
