//! Random edits of specs, by every way in which people and their tools save files.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use fastrand::Rng;

use crate::interrupted::replace_certificate;
use crate::support::{Tree, files};

const HOME: &str = "acme/clusters";

const FLEETS: [&str; 2] = ["acme/fleets/eu.yaml", "acme/fleets/us.yaml"];

const HALF: Duration = Duration::from_millis(8);

/// A tree, and its wanted final content.
pub struct Specs<'t> {
    pub tree: &'t Tree,
    clusters: Vec<Cluster>,
    /// Organizations, and whether each exists.
    guests: Vec<(String, bool)>,
    fleets: [String; 2],
    /// The fleets' limit of tenants, changed only for the sake of an edit.
    tenants: u32,
    folders: u32,
}

struct Cluster {
    name: String,
    /// The spec with placeholders for edited values.
    form: String,
    stays: bool,
    /// Its path; `None` while it is removed.
    file: Option<String>,
    is_broken: bool,
    team: u32,
    gib: u32,
    units: u32,
}

impl Cluster {
    fn text(&self) -> String {
        let Cluster { form, team, gib, units, .. } = self;
        form.replace("TEAM", &format!("team-{team}"))
            .replace("GIB", &gib.to_string())
            .replace("UNITS", &units.to_string())
    }

    fn home(&self) -> String {
        format!("{HOME}/{}.yaml", self.name)
    }
}

/// Ways to save a file.
const SAVES: [fn(&Tree, &str, &str); 5] = [
    // In place.
    |tree, file, text| tree.write(file, text),
    // Written beside, and renamed over it.
    |tree, file, text| {
        let hidden = format!("{}/.{}.swp", folder(file), name(file));
        tree.write(&hidden, text);
        fs::rename(tree.path().join(hidden), tree.path().join(file)).unwrap();
    },
    // With the old version kept as a copy, so that the file is missing for a moment.
    |tree, file, text| {
        let place = tree.path().join(file);
        if place.exists() {
            fs::rename(&place, tree.path().join(format!("{file}~"))).unwrap();
            sleep(HALF);
        }
        tree.write(file, text);
    },
    // In two parts.
    |tree, file, text| {
        tree.write(file, &text[..text.len() / 2]);
        sleep(HALF);
        tree.write(file, text);
    },
    // Truncated first.
    |tree, file, text| {
        tree.write(file, "");
        sleep(HALF);
        tree.write(file, text);
    },
];

/// Mistakes, each of which is repaired later.
const MISTAKES: [fn(&str) -> String; 7] = [
    |text| text.replace("kafka_units", "kafka_unit"),
    |text| text.replace("tenancy_mode: Shared", "tenancy_mode: [Shared"),
    |text| text.replace("infrastructure: ", "infrastructure: no-"),
    |text| text.replace("cluster_type: kafka", "cluster_type: 7"),
    |text| text[..text.len() / 3].to_owned(),
    |_| String::new(),
    |_| "\u{0}\u{1}: [}".to_owned(),
];

fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name(file: &str) -> &str {
    file.rsplit_once('/').map_or(file, |(_, name)| name)
}

impl<'t> Specs<'t> {
    /// Two fleets with three clusters each: one or two that stay, and others that come and go. Nothing is
    /// protected: clusters stay only because of their specs. `edit` changes the spec of a fleet or cluster,
    /// by the fleet.
    pub fn write(tree: &'t Tree, edit: impl Fn(&str, String) -> String) -> Self {
        tree.edit("organizations.yaml", "clusters: 10", "clusters: 100");
        tree.edit("organizations.yaml", "kafka_units: 20", "kafka_units: 100");
        let eu = tree.read(FLEETS[0]).replace("max_kafka_units: 10", "max_kafka_units: 50");
        let eu = eu.replace("max_tenants: 5", "max_tenants: 10");
        let us =
            eu.replace("identifier: eu", "identifier: us").replace("domain: kafka.acme.example.com\n", "");
        let fleets = [edit("eu", eu), edit("us", us)];
        FLEETS.iter().zip(&fleets).for_each(|(file, text)| tree.write(file, text));
        let large = tree.read("acme/clusters/orders.yaml").replace("value: checkout", "value: TEAM");
        let large = large.replace("kafka_units: 1", "kafka_units: UNITS\ndeletion_protection: false");
        let large = format!("{large}  storage:\n    size_gib: GIB\n");
        let small = tree.read("acme/clusters/sandbox.yaml");
        let small = small.replace("kafka_units: 1", "kafka_units: 1\ntags:\n  - key: team\n    value: TEAM");
        let small = format!("{small}    size_gib: GIB\n");
        for file in ["acme/clusters/orders.yaml", "acme/clusters/sandbox.yaml"] {
            tree.remove(file);
        }
        let cluster = |name: &str, fleet: &str, stays: bool| {
            let (form, identifier) = match name {
                "orders" => (&large, "orders"),
                _ => (&small, "sandbox"),
            };
            let form = form.replace(&format!("identifier: {identifier}"), &format!("identifier: {name}"));
            let form = edit(fleet, form.replace("infrastructure: eu", &format!("infrastructure: {fleet}")));
            let cluster = Cluster {
                name: name.to_owned(),
                form,
                stays,
                file: Some(format!("{HOME}/{name}.yaml")),
                is_broken: false,
                team: 0,
                gib: 2000,
                units: 1,
            };
            tree.write(&cluster.home(), cluster.text());
            cluster
        };
        let clusters = vec![
            cluster("orders", "eu", true),
            cluster("stays-a", "eu", true),
            cluster("comes-a", "eu", false),
            cluster("stays-b", "us", true),
            cluster("comes-b", "us", false),
            cluster("comes-c", "us", false),
        ];
        let guests = [1, 2, 3].map(|number| (format!("guest-{number}.yaml"), false)).into();
        Specs { tree, clusters, guests, fleets, tenants: 10, folders: 0 }
    }

    pub fn staying(&self) -> impl Iterator<Item = &str> {
        self.clusters.iter().filter(|cluster| cluster.stays).map(|cluster| cluster.name.as_str())
    }

    /// Makes a random edit, and describes it.
    pub fn edit(&mut self, chance: &mut Rng) -> String {
        let which = chance.usize(..self.clusters.len());
        match chance.u32(..24) {
            0..6 => self.change(which, chance),
            6..8 => self.shift(which),
            8 => self.shift_folder(which),
            9..11 => self.break_one(which, chance),
            11..15 => self.mend_one(which, chance),
            15..17 => self.remove(chance),
            17..20 => self.put_back(chance),
            20 => self.change_fleet(chance),
            21 => self.change_guest(chance),
            22 => {
                replace_certificate(self.tree);
                "another certificate".to_owned()
            }
            _ => self.check_out(),
        }
    }

    /// Repairs and restores everything at its own place, and removes the copies that editors left.
    pub fn mend(&mut self) {
        let left = files(&self.tree.path()).into_iter().map(|(file, _)| file);
        left.filter(|file| file.ends_with('~')).for_each(|file| self.tree.remove(&file));
        for guest in 0..self.guests.len() {
            self.invite(guest);
        }
        for (file, text) in FLEETS.iter().zip(&self.fleets) {
            self.tree.write(file, text);
        }
        for cluster in &mut self.clusters {
            if let Some(file) = cluster.file.replace(cluster.home()).filter(|file| *file != cluster.home()) {
                self.tree.remove(&file);
            }
            cluster.is_broken = false;
            self.tree.write(&cluster.home(), cluster.text());
        }
    }

    pub fn remove_others(&mut self) {
        for (file, is_there) in &mut self.guests {
            self.tree.remove(file);
            *is_there = false;
        }
        let others = self.clusters.iter_mut().filter(|cluster| !cluster.stays);
        others.filter_map(|cluster| cluster.file.take()).for_each(|file| self.tree.remove(&file));
    }

    fn save(&self, which: usize, text: &str, chance: &mut Rng) -> String {
        let Some(file) = &self.clusters[which].file else { return "nothing".to_owned() };
        let way = chance.usize(..SAVES.len());
        SAVES[way](self.tree, file, text);
        format!("{file} saved in way {way}")
    }

    fn change(&mut self, which: usize, chance: &mut Rng) -> String {
        let cluster = &mut self.clusters[which];
        cluster.team += 1;
        if chance.u32(..3) == 0 {
            cluster.gib += 1;
        }
        if chance.u32(..3) == 0 && cluster.units < 4 {
            cluster.units += 1;
        }
        cluster.is_broken &= cluster.file.is_none();
        let text = cluster.text();
        self.save(which, &text, chance)
    }

    /// Moves a file to another name in a new folder.
    fn shift(&mut self, which: usize) -> String {
        let cluster = &mut self.clusters[which];
        let Some(file) = &mut cluster.file else { return "nothing".to_owned() };
        self.folders += 1;
        let to = format!("acme/new-{}/deeper/{}.yml", self.folders, cluster.name);
        fs::create_dir_all(self.tree.path().join(folder(&to))).unwrap();
        fs::rename(self.tree.path().join(&*file), self.tree.path().join(&to)).unwrap();
        let told = format!("{file} moved to {to}");
        *file = to;
        told
    }

    fn shift_folder(&mut self, which: usize) -> String {
        let Some(file) = &self.clusters[which].file else { return "nothing".to_owned() };
        let from = file.split('/').take(2).collect::<Vec<_>>().join("/");
        self.folders += 1;
        let to = format!("acme/other-{}", self.folders);
        fs::rename(self.tree.path().join(&from), self.tree.path().join(&to)).unwrap();
        for file in self.clusters.iter_mut().filter_map(|cluster| cluster.file.as_mut()) {
            if let Some(rest) = file.strip_prefix(&format!("{from}/")) {
                *file = format!("{to}/{rest}");
            }
        }
        format!("{from} is now {to}")
    }

    fn break_one(&mut self, which: usize, chance: &mut Rng) -> String {
        let mistake = chance.usize(..MISTAKES.len());
        let text = MISTAKES[mistake](&self.clusters[which].text());
        self.clusters[which].is_broken = self.clusters[which].file.is_some();
        format!("mistake {mistake}: {}", self.save(which, &text, chance))
    }

    fn mend_one(&mut self, which: usize, chance: &mut Rng) -> String {
        let broken = self.clusters.iter().position(|cluster| cluster.is_broken);
        let which = broken.unwrap_or(which);
        self.clusters[which].is_broken = false;
        let text = self.clusters[which].text();
        format!("mended: {}", self.save(which, &text, chance))
    }

    fn remove(&mut self, chance: &mut Rng) -> String {
        let others = self.clusters.iter_mut().filter(|cluster| !cluster.stays && cluster.file.is_some());
        let others: Vec<_> = others.collect();
        let Some(cluster) = chance.choice(others) else { return "nothing".to_owned() };
        cluster.is_broken = false;
        let file = cluster.file.take().unwrap_or_default();
        self.tree.remove(&file);
        format!("{file} removed")
    }

    fn put_back(&mut self, chance: &mut Rng) -> String {
        let gone = self.clusters.iter().position(|cluster| cluster.file.is_none());
        let Some(which) = gone else { return "nothing".to_owned() };
        self.clusters[which].file = Some(self.clusters[which].home());
        let text = self.clusters[which].text();
        format!("put back: {}", self.save(which, &text, chance))
    }

    fn change_fleet(&mut self, chance: &mut Rng) -> String {
        self.tenants += 1;
        let which = chance.usize(..FLEETS.len());
        let text = &mut self.fleets[which];
        let line = text.lines().find(|line| line.starts_with("max_tenants")).unwrap().to_owned();
        *text = text.replace(&line, &format!("max_tenants: {}", self.tenants));
        SAVES[chance.usize(..SAVES.len())](self.tree, FLEETS[which], &self.fleets[which]);
        format!("{} saved", FLEETS[which])
    }

    fn invite(&mut self, guest: usize) {
        let (file, is_there) = &mut self.guests[guest];
        let identifier = file.trim_end_matches(".yaml");
        let text = format!("apiVersion: streamfleet/v1\nkind: Organization\nidentifier: {identifier}\n");
        self.tree.write(file, text);
        *is_there = true;
    }

    fn change_guest(&mut self, chance: &mut Rng) -> String {
        let guest = chance.usize(..self.guests.len());
        let (file, is_there) = &mut self.guests[guest];
        if *is_there {
            self.tree.remove(file);
            *is_there = false;
            return format!("{file} removed");
        }
        self.invite(guest);
        format!("{} written", self.guests[guest].0)
    }

    /// Removes and rewrites everything, as some tools check out a branch.
    fn check_out(&self) -> String {
        let files = self.clusters.iter().filter_map(|cluster| cluster.file.as_ref());
        let files: Vec<_> = files.map(|file| (file, self.tree.read(file))).collect();
        files.iter().for_each(|(file, _)| self.tree.remove(file));
        sleep(HALF);
        files.iter().for_each(|(file, text)| self.tree.write(file, text));
        "all written anew".to_owned()
    }
}
