//! The tree, state, output and secrets of a verb: from flags, the environment, a config file or the defaults.

use std::io::{self, ErrorKind, Read as _, Write as _};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use clap::Args;
use secrecy::SecretString;

use crate::cli::failure::Failure;
use crate::cli::{command, credentials, paths};
use crate::config::{Config, GIVEN_TOGETHER, Listen, ManifestsFile, not_emails};
use crate::problem::quote_untrusted;
use crate::source::git::Mirror;
use crate::spec::SourceId;
use crate::spec::describe::nearest;
use crate::state::State;

/// The default folder in a tree for everything that is kept there. No spec is read from it, because its name
/// begins with a dot.
pub const OWN_FOLDER: &str = ".streamfleet";
/// A `.gitignore` that ignores its whole folder, itself included.
pub const IGNORE_ALL: &str = "*\n";

/// The variable with the token for a git repository over https.
const GIT_TOKEN: &str = "STREAMFLEET_GIT_TOKEN";

/// The variable with the e-mail addresses of super users, separated by commas.
pub const SUPER_USERS: &str = "STREAMFLEET_SUPER_USER_EMAILS";

/// The variable with the address that `serve` listens on.
pub const LISTEN: &str = "STREAMFLEET_LISTEN";

const ADDRESSES: &str = "use an address of this host and a port, such as `127.0.0.1:3000` or `[::1]:3000`, or `none` \
    to open no port";

/// The largest manifests file of an operator, in bytes. Strimzi's has less than 1 MiB.
const MAX_MANIFESTS: u64 = 16 << 20;

/// The spec tree and the installation that a verb works with.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// The folder of spec files. Default: the git repository of the settings, otherwise the current folder.
    #[arg(value_name = "TREE")]
    pub tree: Option<Utf8PathBuf>,
    #[command(flatten)]
    pub installation: InstallationArgs,
}

/// The folders of an installation. By default each is inside the tree, in a folder that is ignored by git and
/// not read for specs; with `source.git`, that folder is beside the settings.
#[derive(Debug, Clone, Args)]
pub struct InstallationArgs {
    /// The settings of the installation, a TOML file. Without it, every setting has its default.
    #[arg(long, value_name = "FILE", env = "STREAMFLEET_CONFIG")]
    pub config: Option<Utf8PathBuf>,
    /// The folder of the state. [default: TREE/.streamfleet/state]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_STATE_DIR")]
    pub state_dir: Option<Utf8PathBuf>,
    /// The folder that directory fleets write to. [default: TREE/.streamfleet/output]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_OUTPUT_DIR")]
    pub output_dir: Option<Utf8PathBuf>,
    /// The folder of `from_file` secrets, with one folder for each organization. [default:
    /// TREE/.streamfleet/secrets]
    #[arg(long, value_name = "DIR", env = "STREAMFLEET_SECRETS_DIR")]
    pub secrets_dir: Option<Utf8PathBuf>,
}

/// All settings of a verb, resolved before any spec is read.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tree as the user named it.
    pub tree_as_given: Utf8PathBuf,
    /// The arguments that name tree and installation, for suggested commands.
    pub arguments: String,
    /// The same without the tree.
    pub flags: String,
    /// The absolute path of the tree, with its links: deployments may replace a tree by changing a link. With
    /// `source.git`, the current folder.
    pub tree: Utf8PathBuf,
    /// The tree with all links resolved.
    pub real_tree: Utf8PathBuf,
    /// The parent of `.streamfleet`, which contains every folder that has no path of its own. It is the tree
    /// or, with `source.git`, the folder of the settings.
    pub home: Utf8PathBuf,
    pub from_git: bool,
    pub state_dir: Utf8PathBuf,
    pub output_dir: Utf8PathBuf,
    pub secrets_dir: Utf8PathBuf,
    pub socket: Utf8PathBuf,
    pub config: Config,
    pub file: Option<Utf8PathBuf>,
    /// Whether the file sets `policy.mode`.
    pub names_mode: bool,
}

impl Settings {
    /// Resolves every setting: a flag or variable wins over the file, the file over the default.
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
        config.api.listen = listen_by_variable()?.or(config.api.listen);
        let by_file = file.filter(|_| args.tree.is_none() && config.source.git.is_some());
        let home = by_file.map_or_else(|| real_tree.clone(), folder_of);
        let choose = |flag: &Option<Utf8PathBuf>, file: &Option<Utf8PathBuf>, name: &str| {
            let given = flag.as_ref().or(file.as_ref()).cloned();
            given.unwrap_or_else(|| home.join(OWN_FOLDER).join(name))
        };
        let chosen = choose(state_dir, &config.state_dir, "state");
        // `api.socket` belongs to the daemon of the configured state. With another `--state-dir`, the socket
        // is in that folder.
        let same_state =
            state_dir.is_none() || state_dir.as_deref().map(paths::absolute_path) == config.state_dir;
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
            settings.refuse_output_among_specs(args.tree.is_some())?;
        }
        Ok(settings)
    }

    /// The clone of the git repository, in the state folder; none when the specs are in a folder.
    pub fn mirror(&self) -> Option<Mirror> {
        self.mirror_in(self.state_dir.join("git"))
    }

    pub fn mirror_in(&self, place: Utf8PathBuf) -> Option<Mirror> {
        let token = std::env::var(GIT_TOKEN).ok().filter(|token| !token.is_empty());
        let mirror = || Mirror::of(&self.config.source, place, token.map(SecretString::from));
        self.from_git.then(mirror).flatten()
    }

    pub fn source(&self) -> SourceId {
        let folder = || SourceId(self.tree.to_string());
        self.mirror().map_or_else(folder, |mirror| mirror.source())
    }

    /// Writes a path below the tree as the user named the tree.
    pub fn shorten(&self, path: &Utf8Path) -> String {
        match path.strip_prefix(&self.tree) {
            Ok(below) if self.from_git => below.to_string(),
            Ok(below) => self.tree_as_given.join(below).into_string(),
            Err(_) => path.to_string(),
        }
    }

    /// The source of the specs, for messages.
    pub fn shown(&self) -> String {
        match self.mirror() {
            Some(mirror) => mirror.source().0,
            None => self.tree_as_given.to_string(),
        }
    }

    /// Refuses a folder inside a tree that was applied: a second state would not know its objects.
    fn refuse_part_of_a_tree(&self) -> Result<(), Failure> {
        if self.state_dir != self.real_tree.join(OWN_FOLDER).join("state") || self.state_dir.is_dir() {
            return Ok(());
        }
        let mut above = self.real_tree.ancestors().skip(1);
        match above.find(|folder| State::has_applied_records(&folder.join(OWN_FOLDER).join("state"))) {
            None => Ok(()),
            Some(whole) => Err(Failure::new(format!(
                "`{}` is a part of the spec tree `{whole}`, which was applied as a whole",
                self.tree_as_given
            ))
            .hint(format!(
                "use the whole tree: `{whole}`; to make this part a tree of its own, give it a --state-dir"
            ))),
        }
    }

    /// Refuses an output folder where manifests would be read as specs. A service that nothing was told about the
    /// specs starts in such a folder (`systemd/streamfleet.service`).
    fn refuse_output_among_specs(&self, is_named: bool) -> Result<(), Failure> {
        let output = std::path::absolute(&self.output_dir).unwrap_or_else(|_| self.output_dir.clone().into());
        let inner = [&self.tree, &self.real_tree].into_iter().find_map(|tree| output.strip_prefix(tree).ok());
        let Some(inner) = inner else { return Ok(()) };
        if inner.components().any(|name| name.as_os_str().to_string_lossy().starts_with('.')) {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the output folder `{}` is inside the spec tree, and its files would be read as specs",
            self.output_dir
        ))
        .hint(if is_named {
            "choose a folder outside of the tree, or one whose name begins with a dot"
        } else {
            "nothing names the specs, so the current folder is taken for them: name their folder, or choose an output folder \
             outside of it"
        }))
    }

    /// Writes a `.gitignore` into the tree's own folder, if it is used. An existing file stays.
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

/// The super users named in the environment; none if the variable is empty or not set.
///
/// # Errors
/// When an entry is no e-mail address.
pub fn super_users_by_variable() -> Result<Option<Vec<String>>, Failure> {
    let Ok(text) = std::env::var(SUPER_USERS) else { return Ok(None) };
    let named: Vec<String> =
        text.split(',').map(str::trim).filter(|email| !email.is_empty()).map(str::to_owned).collect();
    match not_emails(&named) {
        Some(why) => Err(Failure::new(format!("the variable {SUPER_USERS} {why}"))
            .hint("list e-mail addresses with commas between them: ada@example.com,grace@example.com")),
        None => Ok((!named.is_empty()).then_some(named)),
    }
}

/// The address in the environment; none if the variable is empty or not set.
///
/// # Errors
/// When it is no address.
pub fn listen_by_variable() -> Result<Option<Listen>, Failure> {
    let Ok(text) = std::env::var(LISTEN) else { return Ok(None) };
    let listen = (!text.is_empty()).then(|| text.parse()).transpose();
    listen.map_err(|_| {
        let shown = quote_untrusted(&text);
        Failure::new(format!("the variable {LISTEN} is `{shown}`, which is not an address and a port"))
            .hint(ADDRESSES)
    })
}

pub fn folder_of(file: &Utf8Path) -> Utf8PathBuf {
    let file = paths::absolute_path(file);
    file.parent().map_or_else(|| file.clone(), Utf8Path::to_owned)
}

fn canonical_tree(tree: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let canonical = tree.canonicalize_utf8().map_err(|error| {
        Failure::during(format!("cannot open the spec tree `{tree}`"), &error)
            .hint("give the folder with the spec files; `streamfleet init DIR` creates an example")
    })?;
    if !canonical.is_dir() {
        return Err(Failure::new(format!("the spec tree `{tree}` is not a folder"))
            .hint("give the folder that contains the file"));
    }
    Ok(canonical)
}

/// The absolute path with its links unresolved, so that a changed link is followed later. None for paths with
/// `..`: behind a link, the parent can't be derived from the name.
fn absolute(path: &Utf8Path) -> Option<Utf8PathBuf> {
    let path = Utf8PathBuf::from_path_buf(std::path::absolute(path).ok()?).ok()?;
    let is_above = path.components().any(|part| part == Utf8Component::ParentDir);
    // Removes a trailing slash.
    (!is_above).then(|| path.components().collect())
}

pub const OWN_FOLDERS: &str = "use a separate folder for each";

/// Refuses one folder for two of state, output and secrets.
///
/// # Errors
/// Which two, as a sentence.
pub fn refuse_shared_folder(folders: [Option<&Utf8PathBuf>; 3]) -> Result<(), String> {
    const NAMES: [&str; 3] = ["state_dir", "output_dir", "secrets_dir"];
    // A folder that doesn't exist yet has no links to resolve.
    let place = |folder: &Utf8PathBuf| {
        folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.into())
    };
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let (Some(folder), Some(same)) = (folders[one], folders[other]) else { continue };
        if place(folder) == place(same) {
            return Err(format!(
                "`{}` and `{}` are the same folder, `{folder}`: state, output and secrets must be separate",
                NAMES[one], NAMES[other]
            ));
        }
    }
    Ok(())
}

/// Reads a file of settings. Returns the keys in the file, and all settings with their defaults.
pub fn read_config(path: &Utf8Path) -> Result<(toml::Table, Config), Failure> {
    let unread = |error: std::io::Error| {
        let failure = Failure::during(format!("cannot read the config file `{path}`"), &error);
        match error.kind() {
            ErrorKind::NotFound => failure.hint("`streamfleet config sample` prints one to start from"),
            _ => failure.hint("make it readable for the user that runs streamfleet"),
        }
    };
    let text = std::fs::read_to_string(path).map_err(unread)?;
    let not_understood = |error: &toml::de::Error| {
        let words = error.to_string();
        Failure::new(format!("cannot parse the config file `{path}`\n{}", words.trim_end()))
            .hint(hint(error.message()))
    };
    let mut config = Config::parse(&text).map_err(|error| not_understood(&error))?;
    let table = toml::from_str(&text).map_err(|error| not_understood(&error))?;
    paths::settle(&mut config, path).map_err(|(why, hint)| {
        Failure::new(format!("the config file `{path}` is invalid\n{why}")).hint(hint)
    })?;
    let folder = path.parent().unwrap_or(Utf8Path::new(""));
    for release in config.operators.strimzi.values_mut() {
        release.content = ManifestsFile::of(read_manifests(&folder.join(&release.manifests)));
    }
    Ok((table, config))
}

/// The hint for settings that can't be parsed: the name that was likely meant, if the message lists names.
fn hint(message: &str) -> String {
    if message.contains(GIVEN_TOGETHER) {
        return "copy the missing keys from `streamfleet config sample`, or remove the table".to_owned();
    }
    if message.contains("no address with a port") {
        return ADDRESSES.to_owned();
    }
    let mut names = message.split('`').skip(1).step_by(2);
    let lists_names = ["unknown field", "unknown variant"].iter().any(|words| message.starts_with(words));
    let unknown = names.next().filter(|_| lists_names);
    match unknown.and_then(|unknown| nearest(unknown, names)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`streamfleet explain config` lists the settings".to_owned(),
    }
}

/// Reads the manifests of an operator. An error concerns only the fleets that use them.
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
