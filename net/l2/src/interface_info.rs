//! What layer 2 says of interfaces in `show interface features` and `show interface address`.

use std::rc::Rc;

use shoal_interface::{Interfaces, SwIfIndex, SwitchedFeature};

use crate::{INPUT_ARC, Input, L2, Mode, OUTPUT_ARC, Output};

/// The last step of frames that go out, which is no feature of its own.
const OUTPUT: SwitchedFeature = SwitchedFeature { name: "OUTPUT", node: "interface-output" };

pub(crate) fn tell(interfaces: &Interfaces, l2: &Rc<L2>) {
    let weak = Rc::downgrade(l2);
    interfaces.add_feature_source(INPUT_ARC, move |index| {
        weak.upgrade().map(|l2| input(&l2, index)).unwrap_or_default()
    });
    let weak = Rc::downgrade(l2);
    interfaces.add_feature_source(OUTPUT_ARC, move |index| {
        weak.upgrade().map(|l2| output(&l2, index)).unwrap_or_default()
    });
    let weak = Rc::downgrade(l2);
    interfaces.add_address_source(move |index| {
        let peer = weak.upgrade().and_then(|l2| match l2.mode(index) {
            Mode::Xconnect(peer) => l2.name_of(peer),
            _ => None,
        });
        peer.map(|peer| format!("L2 xconnect {peer}")).into_iter().collect()
    });
}

fn input(l2: &L2, index: SwIfIndex) -> Vec<SwitchedFeature> {
    let [input, _] = l2.features(index);
    let there = Input::ALL.iter().filter(|feature| input.has(**feature));
    there.map(|feature| SwitchedFeature { name: feature.word(), node: feature.node() }).collect()
}

fn output(l2: &L2, index: SwIfIndex) -> Vec<SwitchedFeature> {
    if l2.mode(index) == Mode::L3 {
        return Vec::new();
    }
    let [_, output] = l2.features(index);
    let there = Output::ALL.iter().filter(|feature| output.has(**feature));
    let listed = there.map(|feature| SwitchedFeature { name: feature.word(), node: feature.node() });
    listed.chain([OUTPUT]).collect()
}
