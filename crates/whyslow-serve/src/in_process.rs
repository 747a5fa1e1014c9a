//! The answers of a server without a server: for reports, which hold them.

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
use crate::desks::Desks;
use crate::folders::Folders;
use crate::lake::Fleet;
use crate::memo::Memo;
use crate::note_store::Notes;
use crate::server::{Server, Shared};
use crate::shelf::Shelf;
use crate::sql_program::Sql;
use crate::token::Token;
use crate::{app, assets};

/// Nobody waits in front of a browser.
const QUESTION_MAX: Duration = Duration::from_mins(10);
const MEMORY_MAX: i64 = 8 << 30;
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A recording that answers addresses.
pub struct Answers {
    shared: Shared,
    is_over: Arc<AtomicBool>,
    runtime: tokio::runtime::Runtime,
}

impl Answers {
    /// Opens a recording, and prepares what charts are drawn from.
    pub fn of(
        recording: Option<&str>,
        talk: &TalkArgs,
        command_line: Box<dyn CommandLine>,
    ) -> Result<Self, Failure> {
        let answers = Self::without_charts(recording, talk, command_line)?;
        for book in answers.shared.shelf.books() {
            book.now().prepare(&answers.is_over);
        }
        Ok(answers)
    }

    /// Opens a recording for questions.
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
        let shelf = Shelf::open(&args.recordings, (folders.cache.as_deref(), None), talk)?;
        let desks = Desks::new(&args, &is_over);
        let shared = Arc::new(Server {
            command_line,
            token: Token::new(None)?,
            shelf,
            desk: desks.usual,
            quick: desks.quick,
            slow: desks.slow,
            resident: desks.resident,
            sql: Sql::find(),
            fleet: Fleet::none(),
            // A report has no notes of its own, and those of its maker stay at home.
            notes: Notes::new(None),
            memo: Memo::new(folders.cache.as_deref()),
            is_confined: false,
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure::new("failed to begin").caused_by(&error))?;
        Ok(Self {
            shared,
            is_over,
            runtime,
        })
    }

    /// What a server would answer to `table?what=io&view=top`, in this form; nothing if it has no
    /// answer to that, as for what was not recorded.
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
            .map_err(|error| Failure::new(format!("`{address}` is no address: {error}")))?;
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
                let told: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let error = told["error"].as_str().unwrap_or("no answer");
                Err(Failure::new(format!("{address}: {error}")))
            }
        }
    }
}

/// A part of the pages, as text.
pub fn page(name: &str) -> Option<String> {
    assets::text(name)
}
