//! How long writing and recognising a frame takes on this machine: `cargo run --release -p shoal-lab-frame --example speed`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use shoal_lab_frame::{FrameClassifier, Program};
use shoal_lab_plan::{
    Change, Checksums, Order, Pace, Rate, Side, Stamps, Stream, Tag, Trial, Variable, Write,
};

const FRAMES: u64 = 1_000_000;

/// Nanoseconds a frame: the least of ten rounds, for others use the machine too.
fn least(mut round: impl FnMut()) -> f64 {
    (0..10)
        .map(|_| {
            let began = Instant::now();
            round();
            began.elapsed().as_nanos() as f64 / FRAMES as f64
        })
        .fold(f64::MAX, f64::min)
}

fn stream(changes: Vec<Change>) -> Stream {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46];
    frame.extend([0, 0, 0, 0, 10, 17, 0, 0, 198, 18, 0, 2, 198, 19, 0, 2, 0xc0, 0x20, 0, 7, 0, 26, 0, 0]);
    frame.resize(60, 0);
    Stream {
        name: "speed".to_owned(),
        from: Side::Left,
        frame,
        changes,
        checksums: Checksums { ip4: true, l4: true },
        tag: Tag::Signed { offset: 42 },
        pace: Pace::Steady { rate: Rate::per_second(1), after: Duration::ZERO },
        stamps: Stamps::None,
        expected: true,
        answers: None,
    }
}

fn change(order: Order, offset: u16) -> Change {
    let variable =
        Variable { order, min: 1024, max: 49_151, first: 1024, step: 1, list: Vec::new(), seed: 1 };
    Change { variable, writes: vec![Write::whole(offset, 2)] }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cases = [
        ("no changes", Vec::new()),
        ("rising ports", vec![change(Order::Rising, 34), change(Order::Rising, 36)]),
        ("random ports", vec![change(Order::Random, 34), change(Order::Random, 36)]),
        ("permuted ports", vec![change(Order::Permutation, 34), change(Order::Permutation, 36)]),
    ];
    let mut ring = vec![[0_u8; 64]; 256];
    for (name, changes) in cases {
        let sent = stream(changes);
        let mut program = Program::new(&sent, 0, 1, 1)?;
        let took = least(|| {
            for sequence in 0..FRAMES {
                if let Some(frame) = ring.get_mut((sequence & 255) as usize) {
                    program.write(sequence, frame);
                }
            }
        });
        println!("write, {name:15} {took:6.2} ns a frame");
    }
    let trial = Trial::new(1, vec![stream(Vec::new())], Duration::from_secs(1));
    let recogniser = FrameClassifier::new(&trial);
    let took = least(|| {
        for sequence in 0..FRAMES {
            if let Some(frame) = ring.get((sequence & 255) as usize) {
                black_box(recogniser.look(black_box(frame)));
            }
        }
    });
    println!("look                   {took:6.2} ns a frame");
    let mut wrong = 0;
    let took = least(|| {
        for sequence in 0..FRAMES {
            if let Some(frame) = ring.get((sequence & 255) as usize) {
                wrong +=
                    u32::from(recogniser.check(black_box(frame.get(..60).unwrap_or_default()), 0).is_err());
            }
        }
    });
    println!("check                  {took:6.2} ns a frame, {wrong} wrong");
    Ok(())
}
