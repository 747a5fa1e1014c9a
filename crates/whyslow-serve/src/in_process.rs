//! Answers of the API without a server, for reports, which embed them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use tower::ServiceExt as _;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;

use crate::args::ServeArgs;
use crate::command_line::CommandLine;
use crate::folders::Folders;
use crate::lake::Fleet;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::query_queues::QueryQueues;
use crate::recording_set::RecordingSet;
use crate::server::{Server, Shared};
use crate::sql_program::Sql;
use crate::token::Token;
use crate::{app, assets};

/// Longer than in a server, since no browser waits.
const QUESTION_MAX: Duration = Duration::from_mins(10);
const MEMORY_MAX: i64 = 8 << 30;
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A recording that answers API requests.
pub struct Answers {
    shared: Shared,
    is_over: Arc<AtomicBool>,
    runtime: tokio::runtime::Runtime,
}

impl Answers {
    /// Opens a recording, and prepares the data for charts.
    pub fn of(
        recording: Option<&str>,
        talk: &TalkArgs,
        command_line: Box<dyn CommandLine>,
    ) -> Result<Self, Failure> {
        let answers = Self::without_charts(recording, talk, command_line)?;
        for served in answers.shared.recordings.all() {
            served.now().prepare(&answers.is_over);
        }
        Ok(answers)
    }

    /// Opens a recording for queries.
    pub fn without_charts(
        recording: Option<&str>,
        talk: &TalkArgs,
        command_line: Box<dyn CommandLine>,
    ) -> Result<Self, Failure> {
        let is_over = interrupt::flag()?;
        let folders = Folders::of_user();
        let args = ServeArgs {
            recordings: recording.map(str::to_owned).into_iter().collect(),
            query_time: QUESTION_MAX,
            query_memory: MEMORY_MAX,
            ..ServeArgs::default()
        };
        let recordings =
            RecordingSet::open(&args.recordings, (folders.cache.as_deref(), None), talk)?;
        let queues = QueryQueues::new(&args, &is_over);
        let shared = Arc::new(Server {
            command_line,
            token: Token::new(None)?,
            recordings,
            queue: queues.usual,
            quick: queues.quick,
            slow: queues.slow,
            resident: queues.resident,
            sql: Sql::find(),
            fleet: Fleet::none(),
            // A report has no notes of its own, and must not contain the notes of its author.
            notes: Notes::new(None),
            memo: Memo::new(folders.cache.as_deref()),
            is_confined: false,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure::new("cannot start the runtime").caused_by(&error))?;
        Ok(Self {
            shared,
            is_over,
            runtime,
        })
    }

    /// The response to a request such as `table?what=io&view=top` in this format; `None` if there
    /// is none, as for events that were not recorded.
    pub fn get(&self, address: &str, accept: &str) -> Result<Option<Vec<u8>>, Failure> {
        let request = Request::builder()
            .uri(format!("/api/v1/{address}"))
            .header(header::HOST, "localhost")
            .header(
                header::AUTHORIZATION,
                format!("Bearer {}", self.shared.token.text()),
            )
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .map_err(|error| Failure::new(format!("invalid request path `{address}`: {error}")))?;
        let router = app::router(Arc::clone(&self.shared));
        let (status, bytes) = self.runtime.block_on(async {
            let Ok(response) = router.oneshot(request).await;
            let status = response.status();
            let bytes = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
            (status, bytes)
        });
        if self.is_over.load(Ordering::Relaxed) {
            return Err(Failure::interrupted());
        }
        let bytes = bytes.map_err(|error| Failure::new(format!("`{address}`: {error}")))?;
        match status {
            StatusCode::OK => Ok(Some(bytes.to_vec())),
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::PAYLOAD_TOO_LARGE => {
                Ok(None)
            }
            _ => {
                let reply: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let error = reply["error"].as_str().unwrap_or("no answer");
                Err(Failure::new(format!("{address}: {error}")))
            }
        }
    }
}

/// A file of the pages, as text.
pub fn page(name: &str) -> Option<String> {
    assets::text(name)
}
