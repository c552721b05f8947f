//! Maps refused writes to problem documents.

use std::time::Duration;

use crate::api::problem::{FieldError, ProblemDocument};
use crate::api::writing::{WriteFault, WriteRefusal};

impl From<WriteRefusal> for ProblemDocument {
    fn from(why: WriteRefusal) -> ProblemDocument {
        let problem = ProblemDocument::new(why.kind(), why.to_string());
        let (hint, mistake) = (
            why.hint(),
            match &why {
                WriteRefusal::Edit(mistake) => Some(FieldError::from(&**mistake)),
                _ => None,
            },
        );
        let retry_after = match &why {
            WriteRefusal::Away { retry_after, .. } => Some(*retry_after),
            WriteRefusal::Unsure { .. } => Some(Duration::from_secs(30)),
            _ => None,
        };
        let errors = match why {
            WriteRefusal::Invalid(faults) => faults.into_iter().map(field).collect(),
            _ => mistake.into_iter().collect(),
        };
        ProblemDocument { hint, errors, retry_after, ..problem }
    }
}

fn field(WriteFault { pointer, detail, hint, file, line }: WriteFault) -> FieldError {
    FieldError { pointer, detail, hint, file: file.map(|file| file.to_string()), line }
}
