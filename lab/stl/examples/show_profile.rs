//! Prints the streams that a profile makes: `show_profile PROFILE [TUNABLES [PORT-RATE [PYTHON]]]`, for both sides.
//!
//! `cargo run -p shoal-lab-stl --example show_profile -- bench size=imix,vm=var2 10gbpsl1`

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use shoal_lab_stl::{Direction, Load, Sending, both_sides, networks};

fn main() -> ExitCode {
    match show() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn show() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).cloned().unwrap_or_default();
    let mut how = Load { tunables: argument(1), ..Load::default() };
    if !argument(3).is_empty() {
        how.python = argument(3).into();
    }
    let mut sending = Sending::new(Duration::from_secs(10));
    if !argument(2).is_empty() {
        sending.port_rate = Some(argument(2).parse()?);
    }
    let made = both_sides(argument(0).as_ref(), Direction::Both, &how, &sending)?;
    for stream in &made.streams {
        println!("{}: {:?}", stream.name, stream.pace);
        print!("  {} bytes: ", stream.frame.len());
        stream.frame.iter().take(64).for_each(|byte| print!("{byte:02x}"));
        println!();
        println!("  {:?}, {:?}, stamps {:?}", stream.tag, stream.checksums, stream.stamps);
        for change in &stream.changes {
            let (v, listed) = (&change.variable, change.variable.list.len());
            println!("  {:?} {}..={} from {} by {}, {listed} listed", v.order, v.min, v.max, v.first, v.step);
            change.writes.iter().for_each(|write| println!("    {write:?}"));
        }
    }
    for each in networks(&made.streams) {
        println!("{:?}: {:?} to {:?}", each.from, each.sources, each.destinations);
    }
    made.notes.iter().for_each(|note| println!("note: {note}"));
    Ok(())
}
