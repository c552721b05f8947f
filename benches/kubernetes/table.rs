//! Prints measurements as Markdown.

use std::time::Duration;

use crate::measure::{Measured, TICKS};

pub struct Table {
    objects: usize,
    sides: Vec<(&'static str, Vec<Measured>)>,
}

const PHASES: [&str; 3] = ["first apply", "nothing changed", "one object changed"];

impl Table {
    pub fn new(objects: usize) -> Table {
        Table { objects, sides: Vec::new() }
    }

    pub fn add(&mut self, side: &'static str, phases: Vec<Measured>) {
        self.sides.push((side, phases));
    }

    /// Prints the table, and each side's requests beyond the floor.
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

    fn phases(&self) -> impl Iterator<Item = (&'static str, Vec<(&'static str, &Measured)>)> {
        PHASES.into_iter().enumerate().map(|(number, phase)| {
            let sides = self.sides.iter().filter_map(|(side, phases)| Some((*side, phases.get(number)?)));
            (phase, sides.collect())
        })
    }
}

/// Processor time in seconds, which can't be finer than the clock's ticks.
fn ticked(time: Duration) -> f64 {
    time.as_secs_f64().max(1.0 / TICKS as f64)
}
