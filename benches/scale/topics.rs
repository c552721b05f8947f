//! Measures what 10,000 topics of one cluster add to a plan, and what an edited topic costs beside an edited
//! cluster.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::floor::{self, processor_time};
use crate::process::Process;
use crate::tree::{Hosts, Tree};
use crate::{Run, files};

const TOPICS: usize = 10_000;

/// How many files are edited, one after the other, of each kind.
const EDITS: usize = 11;

const LIMITS: &str = "aims: a plan with the topics takes at most 1 s longer than without; an edited topic costs what an edited \
                      cluster costs";

pub fn measure(folder: &Path) -> io::Result<()> {
    println!("\n{TOPICS} topics of one cluster; {LIMITS}\n");
    let hosts = Hosts { clusters: 10, infra_type: "directory", settings: String::new() };
    let tree = Tree::write(&folder.join("topics"), 10, hosts);
    // As many units as the partitions of the topics need.
    tree.change(0, 8, "");
    let run = |words: &[&str]| Run::of(words, tree.root());
    let specs = floor::read_and_hash(tree.root())?;
    run(&["plan"])?.tell("plan of an empty installation, no topics", &specs);
    for topic in 0..TOPICS {
        write(&tree, topic, 604_800_000)?;
    }
    let specs = floor::read_and_hash(tree.root())?;
    run(&["plan"])?.tell("the same with the topics", &specs);
    let applied = run(&["apply", "--yes"])?;
    let output = tree.root().join(".streamfleet/output");
    applied.tell("apply to a folder", &floor::write_and_sync(&output, &folder.join("topics-copy"))?);
    println!("{:79} {} files", "", files(&output)?.len());
    let all = &specs + &floor::read_and_hash(&output)?;
    run(&["plan"])?.tell("plan with nothing changed", &all);

    let mut process = Process::open(&tree)?;
    process.plan()?;
    let mut edits = [Vec::new(), Vec::new()];
    for edit in 0..EDITS {
        write(&tree, edit, 604_800_001)?;
        edits[0].push(edited(&mut process)?);
        tree.change(1 + edit % 9, 2 + u32::from(edit >= 9), "");
        edits[1].push(edited(&mut process)?);
    }
    let [topic, cluster] = edits.map(|mut edits| {
        edits.sort_unstable();
        edits[EDITS / 2]
    });
    println!(
        "an edited topic costs {} ms of processor time, an edited cluster {} ms (medians of {EDITS}), ratio {:.2}",
        topic.as_millis(),
        cluster.as_millis(),
        topic.as_secs_f64() / cluster.as_secs_f64()
    );
    Ok(())
}

fn edited(process: &mut Process) -> io::Result<Duration> {
    let before = processor_time();
    process.plan()?;
    Ok(processor_time() - before)
}

fn write(tree: &Tree, topic: usize, retention: u64) -> io::Result<()> {
    let folder = tree.root().join("org-00/topics/cluster-00000");
    fs::create_dir_all(&folder)?;
    let text = format!(
        "apiVersion: streamfleet/v1\nkind: Topic\norganization: org-00\ncluster: cluster-00000\nname: topic-{topic:05}\n\
         partitions: 1\nconfig:\n  retention.ms: {retention}\n"
    );
    fs::write(folder.join(format!("topic-{topic:05}.yaml")), text)
}
