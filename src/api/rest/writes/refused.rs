//! Maps refused writes to problem documents.

use std::time::Duration;

use crate::api::problem::{FieldError, Problem};
use crate::api::writing::{Fault, Refused};

impl From<Refused> for Problem {
    fn from(why: Refused) -> Problem {
        let problem = Problem::new(why.kind(), why.to_string());
        let (hint, mistake) = (
            why.hint(),
            match &why {
                Refused::Edit(mistake) => Some(FieldError::from(&**mistake)),
                _ => None,
            },
        );
        let retry_after = match &why {
            Refused::Away { retry_after, .. } => Some(*retry_after),
            Refused::Unsure { .. } => Some(Duration::from_secs(30)),
            _ => None,
        };
        let errors = match why {
            Refused::Invalid(faults) => faults.into_iter().map(field).collect(),
            _ => mistake.into_iter().collect(),
        };
        Problem { hint, errors, retry_after, ..problem }
    }
}

fn field(Fault { pointer, detail, hint, file, line }: Fault) -> FieldError {
    FieldError { pointer, detail, hint, file: file.map(|file| file.to_string()), line }
}
