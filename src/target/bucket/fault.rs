//! Why a bucket can't be made, in words.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use http::StatusCode;

use crate::catalog::BucketPlace;
use crate::config::DeniedAddress;
use crate::target::https::HttpsFault;

/// A bucket that can't be made: the attempt, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketError {
    place: Box<BucketPlace>,
    fault: BucketFault,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketFault {
    NoKeys,
    NoUrl,
    Denied(DeniedAddress),
    Connection(String),
    Silent(Duration),
    /// Somebody else has a bucket of that name.
    Foreign,
    UnknownKey,
    WrongSecret,
    Clock,
    /// The region that the service named, if it named one.
    Region(Option<String>),
    Forbidden,
    Name,
    Other {
        status: StatusCode,
        code: Option<String>,
    },
}

impl From<HttpsFault> for BucketFault {
    fn from(fault: HttpsFault) -> BucketFault {
        match fault {
            HttpsFault::Denied(denied) => BucketFault::Denied(denied),
            HttpsFault::Connection(why) => BucketFault::Connection(why),
            HttpsFault::Silent(time) => BucketFault::Silent(time),
        }
    }
}

/// An answer of the service.
pub struct Answered {
    pub status: StatusCode,
    /// The region that it names.
    pub region: Option<String>,
    /// The code of the error.
    pub code: Option<String>,
    /// The names of the buckets that it lists.
    pub buckets: BTreeSet<String>,
}

impl Answered {
    pub fn of(status: StatusCode, region: Option<String>, body: &[u8]) -> Answered {
        let text = String::from_utf8_lossy(body);
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            let (value, _) = rest.split_once(&format!("</{name}>"))?;
            Some(value.trim().to_owned()).filter(|value| is_word(value))
        };
        let names = text.split("<Name>").skip(1).filter_map(|rest| rest.split_once("</Name>"));
        let buckets = names.map(|(name, _)| name.to_owned()).collect();
        Answered { status, region: region.or_else(|| element("Region")), code: element("Code"), buckets }
    }

    /// Whether the service doesn't know this part of the API.
    pub fn is_unknown(&self) -> bool {
        let codes = ["NotImplemented", "MethodNotAllowed", "KMSNotConfigured"];
        [StatusCode::NOT_IMPLEMENTED, StatusCode::METHOD_NOT_ALLOWED].contains(&self.status)
            || self.code.as_deref().is_some_and(|code| codes.contains(&code))
    }

    pub fn fault(self) -> BucketFault {
        match self.code.as_deref() {
            Some("BucketAlreadyExists") => BucketFault::Foreign,
            Some("InvalidAccessKeyId") => BucketFault::UnknownKey,
            Some("SignatureDoesNotMatch") => BucketFault::WrongSecret,
            Some("RequestTimeTooSkewed") => BucketFault::Clock,
            Some(
                "AuthorizationHeaderMalformed"
                | "IllegalLocationConstraintException"
                | "InvalidLocationConstraint"
                | "InvalidRegion"
                | "PermanentRedirect",
            ) => BucketFault::Region(self.region),
            Some("InvalidBucketName") => BucketFault::Name,
            _ if self.status == StatusCode::FORBIDDEN => BucketFault::Forbidden,
            _ => BucketFault::Other { status: self.status, code: self.code },
        }
    }
}

/// Whether a text of a server may be shown as it is.
pub fn is_word(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

impl BucketError {
    pub fn new(place: &BucketPlace, fault: BucketFault) -> BucketError {
        BucketError { place: Box::new(place.clone()), fault }
    }

    /// Whether it describes a failed connection, with which a tenant could scan the network around this host.
    pub fn is_unreached(&self) -> bool {
        matches!(self.fault, BucketFault::Connection(_) | BucketFault::Silent(_))
    }

    /// Whether the service may have done what was asked, although it failed.
    pub fn is_open(&self) -> bool {
        let failed = matches!(&self.fault, BucketFault::Other { status, .. } if status.is_server_error());
        failed || self.is_unreached()
    }

    pub fn hint(&self) -> String {
        let account = &self.place.account;
        match &self.fault {
            BucketFault::NoKeys => format!(
                "correct `credentials` of {account}: a section `[default]` with `aws_access_key_id` and \
                 `aws_secret_access_key`"
            ),
            BucketFault::NoUrl => format!("correct `endpoint` of {account}"),
            BucketFault::Denied(_) => {
                "use another service, or allow its address in the settings: `allow_addresses` under `[targets]`".to_owned()
            }
            BucketFault::Connection(_) | BucketFault::Silent(_) => {
                format!("check the service, the network to it, and `endpoint` of {account}; it is tried again")
            }
            BucketFault::Foreign => {
                "choose another `tiered_storage_bucket_name`: all accounts of a service share the names".to_owned()
            }
            BucketFault::UnknownKey => format!("correct `aws_access_key_id` in `credentials` of {account}"),
            BucketFault::WrongSecret => {
                format!("correct `aws_secret_access_key` in `credentials` of {account}")
            }
            BucketFault::Clock => "set the clock of this host, for example with an NTP client".to_owned(),
            BucketFault::Region(_) => {
                format!("correct `cloud_region` of the cluster, or `region` of {account}")
            }
            BucketFault::Forbidden => format!(
                "allow the keys of {account} `s3:CreateBucket`, `s3:ListBucket`, `s3:PutBucketPublicAccessBlock` and \
                 `s3:PutEncryptionConfiguration`, in us-east-1 also `s3:ListAllMyBuckets`, or make the bucket yourself and remove `tiered_storage_create_bucket`"
            ),
            BucketFault::Name => "choose another `tiered_storage_bucket_name`".to_owned(),
            BucketFault::Other { .. } => {
                "resolve what the service reports, or make the bucket yourself and remove `tiered_storage_create_bucket`"
                    .to_owned()
            }
        }
    }
}

/// `cannot make bucket `log` at https://s3.example.com: somebody else has a bucket of that name`.
impl fmt::Display for BucketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BucketPlace { name, region, endpoint, account, .. } = &*self.place;
        write!(f, "cannot make bucket `{name}` at {endpoint}: ")?;
        match &self.fault {
            BucketFault::NoKeys => write!(f, "the credentials of {account} have no access keys"),
            BucketFault::NoUrl => f.write_str("the endpoint is no URL"),
            BucketFault::Denied(denied) => write!(f, "its address {denied}"),
            BucketFault::Connection(why) => f.write_str(why),
            BucketFault::Silent(time) => write!(f, "no answer within {} s", time.as_secs()),
            BucketFault::Foreign => f.write_str("somebody else has a bucket of that name"),
            BucketFault::UnknownKey => f.write_str("the service doesn't know the access key"),
            BucketFault::WrongSecret => f.write_str("the secret key isn't that of the access key"),
            BucketFault::Clock => {
                f.write_str("the clock of this host differs too much from that of the service")
            }
            BucketFault::Region(Some(named)) => {
                write!(f, "the service expects region {named}, and region {region} is set")
            }
            BucketFault::Region(None) => write!(f, "the service doesn't take region {region}"),
            BucketFault::Forbidden => f.write_str("the access key may not do that (403)"),
            BucketFault::Name => f.write_str("the service doesn't take the name"),
            BucketFault::Other { status, code: Some(code) } => {
                write!(f, "the service answers {status} ({code})")
            }
            BucketFault::Other { status, code: None } => write!(f, "the service answers {status}"),
        }
    }
}
