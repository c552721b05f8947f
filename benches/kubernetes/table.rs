//! What was measured, as Markdown.

use std::time::Duration;

use crate::measure::{Measured, TICKS};

/// Sides with what was measured of each, in the same three phases.
pub struct Table {
    objects: usize,
    sides: Vec<(&'static str, Vec<Measured>)>,
}

const PHASES: [&str; 3] = ["first apply", "nothing changed", "one object changed"];

impl Table {
    /// A table of sides that work on this many objects. The first is what the others are compared with.
    pub fn new(objects: usize) -> Table {
        Table { objects, sides: Vec::new() }
    }

    /// Adds a side.
    pub fn add(&mut self, side: &'static str, phases: Vec<Measured>) {
        self.sides.push((side, phases));
    }

    /// Prints the table, and what was asked of the server beyond the floor.
    pub fn print(&self) {
        println!(
            "| | | time | to the floor | objects a second | server's processor | to the floor | own processor | requests | an object | most memory |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|---|");
        for (phase, sides) in self.phases() {
            let Some((_, floor)) = sides.first() else { continue };
            for (side, measured) in &sides {
                let Measured { time, server, client, requests, peak_kib } = measured;
                let (seconds, requests, objects) = (time.as_secs_f64(), requests.sum(), self.objects as f64);
                let peak = peak_kib.map(|kib| format!("{} MB", kib / 1024)).unwrap_or_default();
                println!(
                    "| {phase} | {side} | {seconds:.2} s | {:.2} | {:.0} | {:.2} s | {:.2} | {:.2} s | {requests} | {:.3} | {peak} |",
                    seconds / floor.time.as_secs_f64(),
                    objects / seconds,
                    ticked(*server),
                    ticked(*server) / ticked(floor.server),
                    ticked(*client),
                    requests / objects,
                );
            }
        }
        println!();
        for (phase, sides) in self.phases() {
            let Some(((_, floor), others)) = sides.split_first() else { continue };
            for (side, measured) in others {
                println!(
                    "{phase}, {side}, beyond the floor: {}",
                    measured.requests.beyond(&floor.requests).tell()
                );
            }
        }
    }

    /// What was measured in each phase.
    fn phases(&self) -> impl Iterator<Item = (&'static str, Vec<(&'static str, &Measured)>)> {
        PHASES.into_iter().enumerate().map(|(number, phase)| {
            let sides = self.sides.iter().filter_map(|(side, phases)| Some((*side, phases.get(number)?)));
            (phase, sides.collect())
        })
    }
}

/// In seconds. The clock ticks no faster than this.
fn ticked(time: Duration) -> f64 {
    time.as_secs_f64().max(1.0 / TICKS as f64)
}
