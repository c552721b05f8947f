//! Which tree, state, output and secrets a verb works with: from flags, the environment, a config file or the defaults.

use std::io::{self, ErrorKind, Read as _, Write as _};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use clap::Args;
use secrecy::SecretString;

use crate::cli::failure::Failure;
use crate::cli::{command, credentials, paths};
use crate::config::{Config, Content, GIVEN_TOGETHER, not_emails};
use crate::source::git::Mirror;
use crate::spec::SourceId;
use crate::spec::describe::nearest;
use crate::state::State;

/// The folder in a tree for what is kept there by default, with a dot, so that no spec is read from it.
pub const OWN_FOLDER: &str = ".streamfleet";
/// A `.gitignore` that ignores everything beside and below it, itself too.
pub const IGNORE_ALL: &str = "*\n";

/// The variable of the token for a git repository over https.
const GIT_TOKEN: &str = "STREAMFLEET_GIT_TOKEN";

/// The variable of the super users, with commas.
pub const SUPER_USERS: &str = "STREAMFLEET_SUPER_USER_EMAILS";

/// The largest file of an operator's manifests that is read, in bytes; Strimzi's has less than one MiB.
const MAX_MANIFESTS: u64 = 16 << 20;

/// The spec tree and the installation that a verb works with.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// The folder of spec files. By default the git repository that the settings name, and else this folder.
    #[arg(value_name = "TREE")]
    pub tree: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub installation: InstallationArgs,
}

/// Where an installation keeps its things. Each has a place inside the tree by default, in a folder that no spec is read
/// from and that git ignores; where specs are fetched, that folder is beside the settings.
#[derive(Debug, Clone, Args)]
pub struct InstallationArgs {
    /// The settings of the installation, a TOML file. By default every setting has its default.
    #[arg(long, value_name = "FILE", env = "STREAMFLEET_CONFIG")]
    pub config: Option<Utf8PathBuf>,
    /// The folder of the state. [default: TREE/.streamfleet/state]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_STATE_DIR")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that directory fleets write to. [default: TREE/.streamfleet/output]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_OUTPUT_DIR")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder of `from_file` secrets, one folder in it an organization. [default: TREE/.streamfleet/secrets]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_SECRETS_DIR")]
    pub secrets_dir: Option<Utf8PathBuf>,
}

/// Everything that a verb needs to know before it looks at a spec.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tree as the person named it.
    pub tree_as_given: Utf8PathBuf,
    /// What names the tree and the installation on a command line, for the commands that are proposed.
    pub arguments: String,
    /// What names the installation alone.
    pub flags: String,
    /// The tree, absolute. A link in it may lead elsewhere later, where others put a new tree in its place. Where specs are
    /// fetched, the folder that the command runs in.
    pub tree: Utf8PathBuf,
    /// The same without links.
    pub real_tree: Utf8PathBuf,
    /// The folder in which `.streamfleet` is, for what has no place of its own: the tree, and where specs are fetched the
    /// folder of the settings.
    pub home: Utf8PathBuf,
    /// Whether specs are fetched from the git repository of the settings.
    pub from_git: bool,
    /// The folder of the state.
    pub state_dir: Utf8PathBuf,
    /// The folder that directory fleets write to.
    pub output_dir: Utf8PathBuf,
    /// The folder of `from_file` secrets.
    pub secrets_dir: Utf8PathBuf,
    /// The socket of the daemon that has the state.
    pub socket: Utf8PathBuf,
    /// The settings of the installation.
    pub config: Config,
    /// The file of them; none where none is named.
    pub file: Option<Utf8PathBuf>,
    /// Whether that file says what is done without anybody saying so.
    pub names_mode: bool,
}

impl Settings {
    /// Settles every setting: a flag or variable wins over the file, the file over the default.
    ///
    /// # Errors
    /// When the tree is not a folder, or the config file can't be read or understood.
    pub fn settle(args: &TreeArgs) -> Result<Settings, Failure> {
        let given = args.tree.as_deref().unwrap_or(Utf8Path::new("."));
        let real_tree = canonical_tree(given)?;
        let tree = absolute(given).unwrap_or_else(|| real_tree.clone());
        let InstallationArgs { config, state_dir, output_dir, secrets_dir } = &args.installation;
        let file = config.as_deref();
        let (table, mut config) = file.map(read_config).transpose()?.unwrap_or_default();
        credentials::resolve(&mut config);
        if let Some(named) = super_users_by_variable()? {
            config.api.super_user_emails = named;
        }
        let by_file = file.filter(|_| args.tree.is_none() && config.source.git.is_some());
        let home = by_file.map_or_else(|| real_tree.clone(), folder_of);
        let choose = |flag: &Option<Utf8PathBuf>, file: &Option<Utf8PathBuf>, name: &str| {
            let given = flag.as_ref().or(file.as_ref()).cloned();
            given.unwrap_or_else(|| home.join(OWN_FOLDER).join(name))
        };
        let chosen = choose(state_dir, &config.state_dir, "state");
        // A daemon with another state is another one.
        let same_state = state_dir.is_none() || state_dir.as_deref().map(paths::whole) == config.state_dir;
        let socket = config.api.socket.clone().filter(|_| same_state);
        let settings = Settings {
            socket: socket.unwrap_or_else(|| chosen.join("socket")),
            state_dir: chosen,
            output_dir: choose(output_dir, &config.output_dir, "output"),
            secrets_dir: choose(secrets_dir, &config.secrets_dir, "secrets"),
            tree_as_given: given.to_owned(),
            arguments: command::arguments((by_file.is_none()).then_some(given), &args.installation),
            flags: command::arguments(None, &args.installation),
            tree,
            real_tree,
            home: home.clone(),
            from_git: by_file.is_some(),
            file: file.map(Utf8Path::to_owned),
            names_mode: table.get("policy").is_some_and(|policy| policy.get("mode").is_some()),
            config,
        };
        let Settings { state_dir, output_dir, secrets_dir, .. } = &settings;
        refuse_shared_folder([Some(state_dir), Some(output_dir), Some(secrets_dir)])
            .map_err(|why| Failure::new(why).hint(OWN_FOLDERS))?;
        if !settings.from_git {
            settings.refuse_part_of_a_tree()?;
            settings.refuse_output_among_specs()?;
        }
        Ok(settings)
    }

    /// The clone of the git repository that specs are fetched from, in the state folder; none where they are in a folder.
    pub fn mirror(&self) -> Option<Mirror> {
        self.mirror_in(self.state_dir.join("git"))
    }

    /// The same in another folder.
    pub fn mirror_in(&self, place: Utf8PathBuf) -> Option<Mirror> {
        let token = std::env::var(GIT_TOKEN).ok().filter(|token| !token.is_empty());
        let mirror = || Mirror::of(&self.config.source, place, token.map(SecretString::from));
        self.from_git.then(mirror).flatten()
    }

    /// Which tree it is.
    pub fn source(&self) -> SourceId {
        let folder = || SourceId(self.tree.to_string());
        self.mirror().map_or_else(folder, |mirror| mirror.source())
    }

    /// A path as the person would write it: below the tree as they named it.
    pub fn shorten(&self, path: &Utf8Path) -> String {
        match path.strip_prefix(&self.tree) {
            Ok(below) if self.from_git => below.to_string(),
            Ok(below) => self.tree_as_given.join(below).into_string(),
            Err(_) => path.to_string(),
        }
    }

    /// Where specs come from, for a person.
    pub fn shown(&self) -> String {
        match self.mirror() {
            Some(mirror) => mirror.source().0,
            None => self.tree_as_given.to_string(),
        }
    }

    /// A folder of a tree has no installation of its own: a second state would not know what the first made.
    fn refuse_part_of_a_tree(&self) -> Result<(), Failure> {
        if self.state_dir != self.real_tree.join(OWN_FOLDER).join("state") || self.state_dir.is_dir() {
            return Ok(());
        }
        let mut above = self.real_tree.ancestors().skip(1);
        match above.find(|folder| State::remembers(&folder.join(OWN_FOLDER).join("state"))) {
            None => Ok(()),
            Some(whole) => Err(Failure::new(format!(
                "`{}` is a part of the spec tree `{whole}`, which was applied as a whole",
                self.tree_as_given
            ))
            .hint(format!(
                "name the tree: `{whole}`; to make this one a tree of its own, give it a --state-dir"
            ))),
        }
    }

    /// Manifests among the specs would be read as specs.
    fn refuse_output_among_specs(&self) -> Result<(), Failure> {
        let output = std::path::absolute(&self.output_dir).unwrap_or_else(|_| self.output_dir.clone().into());
        let inner = [&self.tree, &self.real_tree].into_iter().find_map(|tree| output.strip_prefix(tree).ok());
        let Some(inner) = inner else { return Ok(()) };
        if inner.components().any(|name| name.as_os_str().to_string_lossy().starts_with('.')) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the output folder `{}` is among the specs, and would be read as specs",
            self.output_dir
        ))
        .hint("choose a folder beside the tree, or one whose name begins with a dot"))
    }

    /// Makes git leave the folder in the tree alone, where anything is kept in it. A file that is there already stays.
    ///
    /// # Errors
    /// When the folder or the file can't be written.
    pub fn ignore_own_folder(&self) -> io::Result<()> {
        let own = self.home.join(OWN_FOLDER);
        if ![&self.state_dir, &self.output_dir, &self.secrets_dir].iter().any(|dir| dir.starts_with(&own)) {
            return Ok(());
        }
        std::fs::create_dir_all(&own)?;
        match std::fs::File::create_new(own.join(".gitignore")) {
            Ok(mut file) => file.write_all(IGNORE_ALL.as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The super users that the environment names; none where it doesn't say.
///
/// # Errors
/// When something among them is no e-mail address.
pub fn super_users_by_variable() -> Result<Option<Vec<String>>, Failure> {
    let Ok(text) = std::env::var(SUPER_USERS) else { return Ok(None) };
    let named: Vec<String> =
        text.split(',').map(str::trim).filter(|email| !email.is_empty()).map(str::to_owned).collect();
    match not_emails(&named) {
        Some(why) => Err(Failure::new(format!("the variable {SUPER_USERS} {why}"))
            .hint("write e-mail addresses with commas between them: ada@example.com,grace@example.com")),
        None => Ok((!named.is_empty()).then_some(named)),
    }
}

/// The folder that a file of settings is in.
pub fn folder_of(file: &Utf8Path) -> Utf8PathBuf {
    let file = paths::whole(file);
    file.parent().map_or_else(|| file.clone(), Utf8Path::to_owned)
}

fn canonical_tree(tree: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let canonical = tree.canonicalize_utf8().map_err(|error| {
        Failure::during(format!("could not open the spec tree `{tree}`"), &error)
            .hint("name the folder that holds the spec files; `streamfleet init DIR` makes one to start from")
    })?;
    if !canonical.is_dir() {
        return Err(Failure::new(format!("the spec tree `{tree}` is not a folder"))
            .hint("name the folder that holds the file"));
    }
    Ok(canonical)
}

/// A path as it was named, so that it leads where its links lead whenever it is gone. What is above a folder in which a link
/// leads can't be told by its name: none then.
fn absolute(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let path = Utf8PathBuf::from_path_buf(std::path::absolute(path).ok()?).ok()?;
    let is_above = path.components().any(|part| part == Utf8Component::ParentDir);
    // Without a slash at its end.
    (!is_above).then(|| path.components().collect())
}

/// What to do about one folder for two purposes.
pub const OWN_FOLDERS: &str = "give each of them a folder of its own";

/// Whether two of the folders of state, output and secrets are the same one.
///
/// # Errors
/// Which, as a sentence.
pub fn refuse_shared_folder(folders: [Option<&Utf8PathBuf>; 3]) -> Result<(), String> {
    const NAMES: [&str; 3] = ["state_dir", "output_dir", "secrets_dir"];
    // A folder that is not there yet has no links in it.
    let place = |folder: &Utf8PathBuf| {
        folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.into())
    };
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let (Some(folder), Some(same)) = (folders[one], folders[other]) else { continue };
        if place(folder) == place(same) {
            return Err(format!(
                "`{}` and `{}` are one folder, `{folder}`: what is remembered, what is written for others and what is \
                 secret would lie among each other",
                NAMES[one], NAMES[other]
            ));
        }
    }
    Ok(())
}

/// Reads a file of settings: the keys that are in it, and all settings, with the defaults of what it leaves out.
///
/// # Errors
/// When it can't be read or understood.
pub fn read_config(path: &Utf8Path) -> Result<(toml::Table, Config), Failure> {
    let unread = |error: std::io::Error| {
        let failure = Failure::during(format!("could not read the config file `{path}`"), &error);
        match error.kind() {
            ErrorKind::NotFound => failure.hint("`streamfleet config sample` prints one to start from"),
            _ => failure.hint("let the user that runs this read it"),
        }
    };
    let text = std::fs::read_to_string(path).map_err(unread)?;
    let not_understood = |error: &toml::de::Error| {
        let words = error.to_string();
        Failure::new(format!("could not understand the config file `{path}`\n{}", words.trim_end()))
            .hint(hint(error.message()))
    };
    let mut config = Config::parse(&text).map_err(|error| not_understood(&error))?;
    let table = toml::from_str(&text).map_err(|error| not_understood(&error))?;
    paths::settle(&mut config, path).map_err(|(why, hint)| {
        Failure::new(format!("the config file `{path}` is not sound\n{why}")).hint(hint)
    })?;
    let folder = path.parent().unwrap_or(Utf8Path::new(""));
    for release in config.operators.strimzi.values_mut() {
        release.content = Content::of(read_manifests(&folder.join(&release.manifests)));
    }
    Ok((table, config))
}

/// What to do about settings that can't be understood: the key or the word that was likely meant, where the message lists what
/// there is.
fn hint(message: &str) -> String {
    if message.contains(GIVEN_TOGETHER) {
        return "take what is lacking from what `streamfleet config sample` prints, or leave the table out"
            .to_owned();
    }
    if message.contains("socket address") {
        return "name an address of this host and a port, as `127.0.0.1:3000` or `[::1]:3000`".to_owned();
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let lists_names = ["unknown field", "unknown variant"].iter().any(|words| message.starts_with(words));
    let unknown = names.next().filter(|_| lists_names);
    match unknown.and_then(|unknown| nearest(unknown, names)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`streamfleet explain config` says what there is".to_owned(),
    }
}

/// The bytes of an operator's manifests. That they can't be read concerns only the fleets that ask for them.
fn read_manifests(path: &Utf8Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_MANIFESTS + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => Err(error.to_string()),
        Ok(_) if bytes.len() as u64 > MAX_MANIFESTS => {
            Err(format!("it is larger than {} MiB", MAX_MANIFESTS >> 20))
        }
        Ok(_) => Ok(bytes),
    }
}
