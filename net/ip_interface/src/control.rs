//! What is decided for both families together.

use shoal_interface::SwIfIndex;
use shoal_ip::AddressError;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::Control;

/// Lets an interface speak from the addresses of another one, of both families or neither, or no longer.
///
/// # Errors
/// As [`Ip6::set_unnumbered`]; nothing is changed then.
pub fn set_unnumbered(
    ip4: &Ip4,
    ip6: &Ip6,
    interface: SwIfIndex,
    lender: Option<SwIfIndex>,
) -> Result<(), AddressError> {
    let Some(lender) = lender else {
        // Both borrow or neither does.
        let (four, six) = (ip4.set_unnumbered(interface, None), ip6.set_unnumbered(interface, None));
        four?;
        return six;
    };
    let before = ip4.lender(interface);
    ip4.set_unnumbered(interface, Some(lender))?;
    if let Err(e) = ip6.set_unnumbered(interface, Some(lender)) {
        // Nothing is half applied.
        ip4.set_unnumbered(interface, before)?;
        return Err(e);
    }
    Ok(())
}

/// The interface that an unnumbered one speaks from: of both families it is the same one, or there is but one.
pub fn lender(control: &Control, interface: SwIfIndex) -> Option<SwIfIndex> {
    let of_ip4 = control.get::<Ip4>().ok().and_then(|ip4| ip4.lender(interface));
    of_ip4.or_else(|| control.get::<Ip6>().ok()?.on(interface).borrows)
}
