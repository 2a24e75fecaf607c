//! Which features packets of an interface run through.

use shoal_infra::Zeroable;
use shoal_interface::SwIfIndex;

use super::{L2, L2Error, Mode, OnInterface, of_members};
use crate::bitmap::{Bitmap, Input, Output, Place};
use crate::rewrite::TagOp;
use crate::table::L2Data;
use crate::{INPUT_ARC, OUTPUT_ARC};

impl L2 {
    /// The features packets run through that come in by an interface, and those of packets that go out.
    pub fn features(&self, interface: SwIfIndex) -> [Bitmap; 2] {
        let data = self.writer.borrow().get(interface.0 as usize).copied().unwrap_or_else(L2Data::zeroed);
        [Bitmap(data.input), Bitmap(data.output)]
    }

    /// Switches features of packets that come in on or off for an interface in layer 2.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_input(&self, interface: SwIfIndex, input: Bitmap) -> Result<(), L2Error> {
        self.put(interface, OnInterface { input, ..self.on(interface) })
    }

    /// The same of packets that go out.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn set_output(&self, interface: SwIfIndex, output: Bitmap) -> Result<(), L2Error> {
        self.put(interface, OnInterface { output, ..self.on(interface) })
    }

    /// Switches a feature of packets that come in on or off for an interface, which keeps it whatever its mode becomes; it
    /// has no effect while its packets are routed.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn keep_input(&self, interface: SwIfIndex, feature: Input, on: bool) -> Result<(), L2Error> {
        let [input, output] = self.on(interface).kept;
        let input = if on { input.with(feature) } else { input.without(feature) };
        self.put(interface, OnInterface { kept: [input, output], ..self.on(interface) })
    }

    /// The same of packets that go out.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn keep_output(&self, interface: SwIfIndex, feature: Output, on: bool) -> Result<(), L2Error> {
        let [input, output] = self.on(interface).kept;
        let output = if on { output.with(feature) } else { output.without(feature) };
        self.put(interface, OnInterface { kept: [input, output], ..self.on(interface) })
    }

    /// Features of both ways as messages tell them: those that are switched on, those that it keeps, and those that its arcs,
    /// its tags and its mode bring along. What its bridge domain says is not among them.
    pub fn flags(&self, interface: SwIfIndex) -> [Bitmap; 2] {
        let on = self.on(interface);
        let with = |all: Bitmap, there: bool, place: Place| if there { all.with(place) } else { all };
        let arc = |name: &str| self.graph.arc(name).is_ok_and(|arc| arc.any(interface));
        let input = match on.mode {
            Mode::Xconnect(_) => on.input.minus(of_members()).with(Input::Xconnect),
            _ => on.input,
        };
        let [kept_in, kept_out] = on.kept;
        let rewrites = on.tags.op != TagOp::Disabled || on.pbb.is_some();
        let input = with(input.or(kept_in), rewrites, Input::TagRewrite.into());
        [
            with(input, arc(INPUT_ARC), Input::Arc.into()),
            with(on.output.or(kept_out), arc(OUTPUT_ARC), Output::Arc.into()),
        ]
    }
}
