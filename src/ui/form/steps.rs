//! The steps of each kind's form. Two kinds have four; the others have one.

use crate::names::Kind;

pub struct FormStep {
    pub title: &'static str,
    pub lead: &'static str,
    /// The JSON pointers of its fields. What no step names is below the last one, folded.
    pub fields: &'static [&'static str],
}

/// The steps in which a resource of a kind is created.
pub fn steps(kind: Kind) -> &'static [FormStep] {
    match kind {
        Kind::Fleet => &FLEET,
        Kind::Cluster => &CLUSTER,
        Kind::BaseDomain => &BASE_DOMAIN,
        Kind::Organization => &ORGANIZATION,
        Kind::IdentityProvider => &IDENTITY_PROVIDER,
        Kind::CloudAccount => &CLOUD_ACCOUNT,
        Kind::Topic => &TOPIC,
        Kind::User => &USER,
    }
}

static FLEET: [FormStep; 4] = [
    FormStep {
        title: "Provider and name",
        lead: "Where its Kubernetes cluster comes from.",
        fields: &["/infra_type", "/organization", "/identifier"],
    },
    FormStep {
        title: "Tenancy and size",
        lead: "How its clusters are isolated, where clients reach them, and how many fit.",
        fields: &["/tenancy_mode", "/domain", "/max_tenants", "/max_kafka_units"],
    },
    FormStep {
        title: "Placement",
        lead: "Optional. Where the fleet is, in your own words; it is recorded and changes nothing.",
        fields: &["/placement_config/provider", "/placement_config/region"],
    },
    FormStep {
        title: "Access",
        lead: "The kubeconfig with which Streamfleet reaches the Kubernetes cluster.",
        fields: &["/advanced_config/kubeconfig"],
    },
];

static CLUSTER: [FormStep; 4] = [
    FormStep {
        title: "Type and name",
        lead: "What runs, whose it is and what it is called.",
        fields: &["/cluster_type", "/organization", "/identifier"],
    },
    FormStep {
        title: "Provider and size",
        lead: "The tenancy mode must be the fleet's.",
        fields: &["/cloud_provider", "/tenancy_mode", "/kafka_units"],
    },
    FormStep {
        title: "Placement",
        lead: "The fleet that hosts it, and where you say that it is.",
        fields: &["/infrastructure", "/region"],
    },
    FormStep {
        title: "Options",
        lead: "How clients sign in, its disks and its version.",
        fields: &[
            "/advanced_config/oauth",
            "/advanced_config/version",
            "/advanced_config/auto_upgrade",
            "/advanced_config/storage/size_gib",
            "/advanced_config/storage/class",
            "/advanced_config/storage/on_delete",
            "/advanced_config/cluster_access",
            "/tags",
        ],
    },
];

static BASE_DOMAIN: [FormStep; 1] = [FormStep {
    title: "Base domain",
    lead: "Clusters are reached at its subdomains, with its certificate.",
    fields: &[
        "/organization",
        "/domain",
        "/tls_cert",
        "/tls_key",
        "/dns_provider",
        "/cloud_account",
        "/dns_base_domain",
    ],
}];

static ORGANIZATION: [FormStep; 1] = [FormStep {
    title: "Organization",
    lead: "It owns fleets and clusters, and has members with roles.",
    fields: &["/identifier", "/display_name", "/domains", "/members"],
}];

static IDENTITY_PROVIDER: [FormStep; 1] = [FormStep {
    title: "Identity provider",
    lead: "Clients sign in to clusters with its tokens (OAuth).",
    fields: &["/organization", "/identifier", "/issuer", "/jwks_uri", "/audience"],
}];

static CLOUD_ACCOUNT: [FormStep; 1] = [FormStep {
    title: "Cloud account",
    lead: "Credentials for tiered storage and managed DNS.",
    fields: &["/organization", "/identifier", "/provider", "/region", "/endpoint", "/credentials"],
}];

static TOPIC: [FormStep; 1] = [FormStep {
    title: "Topic",
    lead: "It is made on its cluster. Partitions only grow, and a deletion waits for approval.",
    fields: &[
        "/organization",
        "/cluster",
        "/name",
        "/partitions",
        "/config/cleanup.policy",
        "/config/retention.ms",
    ],
}];

static USER: [FormStep; 1] = [FormStep {
    title: "User",
    lead: "It logs in as its cluster says, and has the rights of these lists.",
    fields: &[
        "/organization",
        "/cluster",
        "/identifier",
        "/produce",
        "/consume",
        "/transactional_ids",
        "/password",
    ],
}];

/// The names of fields whose JSON name says little to a person.
static LABELS: [(&str, &str); 20] = [
    ("/identifier", "Name"),
    ("/infrastructure", "Fleet"),
    ("/infra_type", "Provider"),
    ("/cloud_provider", "Provider"),
    ("/domain", "Base domain"),
    ("/max_tenants", "Max clusters"),
    ("/placement_config/provider", "Location, provider"),
    ("/placement_config/region", "Location, region"),
    ("/produce", "Writes to topics"),
    ("/consume", "Reads topics"),
    ("/rules", "Further rights"),
    ("/adopt", "Take over what others made"),
    ("/null_reasons", "Why fields are empty"),
    ("/storage_manifests_file_path", "Folder of the manifests"),
    ("/advanced_config/oauth", "Identity provider"),
    ("/advanced_config/version", "Kafka version"),
    ("/advanced_config/storage/size_gib", "Disk of each broker, in GiB"),
    ("/advanced_config/storage/class", "Storage class"),
    ("/advanced_config/storage/on_delete", "Disks of a deleted cluster"),
    ("/advanced_config/storage_class", "Storage class"),
];

/// Values of fields that are written in YAML.
static EXAMPLES: [(&str, &str); 7] = [
    ("/members", "- {email: ada@example.com, role: admin}"),
    ("/tags", "- {key: team, value: payments}"),
    ("/domains", "- kafka.example.com"),
    ("/produce", "- payments.*"),
    ("/consume", "- {topic: payments.*, group: billing}"),
    ("/transactional_ids", "- billing-*"),
    ("/rules", "- {resource: cluster, operations: [Describe]}"),
];

pub fn example(pointer: &str) -> &'static str {
    EXAMPLES.iter().find(|(known, _)| *known == pointer).map_or("", |(_, example)| example)
}

pub fn label(pointer: &str) -> Option<&'static str> {
    LABELS.iter().find(|(known, _)| *known == pointer).map(|(_, label)| *label)
}
