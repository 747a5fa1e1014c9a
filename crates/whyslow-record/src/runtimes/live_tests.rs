//! Stacks of running programs, compared with what they print themselves and with other tools.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use whyslow_testkit::{Need, skip};

use super::Runtimes;

/// Threads that stand still, and their stacks: the thread id, then a line per frame; ended by an
/// empty line.
const PYTHON: &str = r#"
import sys, threading, time
def inner(n):
    if n == 0:
        threading.Event().wait()
    else:
        inner(n - 1)
def numbers():
    yield 1
    inner(2)
    yield 2
class Worker:
    def work(self):
        for _ in numbers():
            pass
def mapped():
    list(map(lambda n: inner(n), [1]))
def äöü():
    [inner(n)
     for n in [3]]
def sorting():
    sorted([2, 1], key=lambda n:
        inner(0))
targets = [Worker().work, mapped, äöü, sorting, threading.Event().wait]
threads = [threading.Thread(target=target, daemon=True) for target in targets]
for thread in threads:
    thread.start()
time.sleep(0.5)
frames = sys._current_frames()
out = open(1, "w", encoding="utf-8", closefd=False)
for thread in threads:
    print(getattr(thread, "native_id", 0), file=out)
    frame = frames[thread.ident]
    while frame:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        print(name, code.co_filename, frame.f_lineno, sep="\t", file=out)
        frame = frame.f_back
    print(file=out)
print("done", file=out, flush=True)
time.sleep(600)
"#;

/// The same; C functions have no frame here, so they are left out of the list.
const RUBY: &str = r##"
Thread.abort_on_exception = true
def deep(n)
  if n == 0
    Queue.new.pop
  else
    deep(n - 1)
  end
end
class Worker
  def self.all
    [1].each { |x|
      new.work(x)
    }
  end
  def work(x)
    deep(x + 2)
  end
end
def long
  a = 1
  # Far into its code.
SIXTY
  deep(0)
end
threads = [
  Thread.new { Worker.all },
  Thread.new { deep(5) },
  Thread.new { long },
  Thread.new { Queue.new.pop },
]
sleep 0.5
NATIVE = %w[pop each new sleep]
threads.each { |thread|
  puts(thread.respond_to?(:native_thread_id) ? thread.native_thread_id : 0)
  thread.backtrace_locations.each { |at|
    next if NATIVE.include?(at.base_label)
    puts "#{at.label}\t#{at.absolute_path || at.path}\t#{at.lineno}"
  }
  puts
}
puts "done"
STDOUT.flush
sleep 600
"##;

/// A program that is killed at the end of the test.
struct Running {
    child: Child,
    said: Vec<(i32, Vec<String>)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None` if there is no such interpreter.
fn run(interpreter: &str, suffix: &str, program: &str) -> Option<(Running, tempfile::TempDir)> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(format!("program.{suffix}"));
    fs::write(&file, program).expect("it can be written");
    let mut command = Command::new(interpreter);
    let spawned = command.arg(&file).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        skip(Need::Tools, format!("no {interpreter}"));
        return None;
    };
    let lines = BufReader::new(child.stdout.take().expect("it is there")).lines();
    let mut said = Vec::new();
    let mut is_done = false;
    for line in lines {
        let line = line.expect("it can be read");
        is_done = line == "done";
        if is_done {
            break;
        }
        match (line.parse(), said.last_mut()) {
            (Ok(tid), _) => said.push((tid, Vec::new())),
            (_, Some((_, frames))) if !line.is_empty() => frames.push(line),
            _ => {}
        }
    }
    let running = Running { child, said };
    if !is_done {
        skip(
            Need::Tools,
            format!("{interpreter} does not run the program"),
        );
        return None;
    }
    Some((running, folder))
}

/// The stacks by thread id, as the programs print them.
fn seen(runtimes: &mut Runtimes, pid: i32) -> BTreeMap<i32, Vec<String>> {
    let (names, stacks) = runtimes.round(pid).expect("the interpreter is found");
    let line = |frame: &super::Frame| {
        let function: &super::Function = names.get(frame.function).expect("it is named");
        format!("{}\t{}\t{}", function.name, function.file, frame.line)
    };
    let stack = |stack: &super::Stack| stack.frames.iter().map(line).collect();
    stacks
        .into_iter()
        .map(|(tid, found)| (tid, stack(found)))
        .collect()
}

fn check(running: &Running) {
    let pid = running.child.id() as i32;
    let mut runtimes = Runtimes::default();
    let mut seen = seen(&mut runtimes, pid);
    let budget = &runtimes.share.budget;
    assert_eq!((budget.torn(), budget.unreadable()), (0, 0));
    assert!(running.said.len() >= 4);
    for (tid, said) in &running.said {
        let stack = match tid {
            // Old versions do not print the id.
            0 => {
                let found = seen.iter().find(|(_, stack)| *stack == said);
                found.map(|(tid, _)| *tid).and_then(|tid| seen.remove(&tid))
            }
            tid => seen.remove(tid),
        };
        assert_eq!(stack.as_ref(), Some(said), "{tid}");
    }
    // Only the main thread is left.
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [pid]);
    // Read one by one they are the same, with the complete native stack on top if none of it is the
    // interpreter.
    for (tid, said) in running.said.iter().filter(|(tid, _)| *tid != 0) {
        let merged = runtimes.thread(pid, *tid, &[8, 16]).expect("it is there");
        let stack = merged.found.expect("it stands still");
        assert_eq!((merged.native, stack.frames.len()), (2, said.len()));
    }
    assert!(runtimes.thread(pid, 1, &[]).is_none());
}

/// The interpreters named in the variable, separated by colons.
fn interpreters(variable: &str, common: &str) -> Vec<String> {
    let more = env::var(variable).unwrap_or_default();
    let more = more.split(':').filter(|name| !name.is_empty());
    std::iter::once(common)
        .chain(more)
        .map(str::to_owned)
        .collect()
}

#[test]
fn python_is_seen_as_it_sees_itself() {
    for interpreter in interpreters("WHYSLOW_PYTHONS", "python3") {
        if let Some((running, _folder)) = run(&interpreter, "py", PYTHON) {
            eprintln!("{interpreter}");
            check(&running);
        }
    }
}

#[test]
fn ruby_is_seen_as_it_sees_itself() {
    // Instructions beyond the first block of the line index.
    let program = RUBY.replace("SIXTY", &"  a += a * 2 - 1\n".repeat(400));
    for interpreter in interpreters("WHYSLOW_RUBIES", "ruby") {
        if let Some((running, _folder)) = run(&interpreter, "rb", &program) {
            eprintln!("{interpreter}");
            check(&running);
        }
    }
}

#[test]
fn others_see_the_same_of_python() {
    let Some((running, _folder)) = run("python3", "py", PYTHON) else {
        return;
    };
    let pid = running.child.id() as i32;
    let mut command = Command::new("py-spy");
    let dump = command.args([
        "dump",
        "--nonblocking",
        "--full-filenames",
        "--pid",
        &pid.to_string(),
    ]);
    let Ok(output) = dump.output() else {
        return skip(Need::Tools, "no py-spy");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut theirs = BTreeMap::new();
    let mut tid = 0;
    for line in text.lines() {
        if let Some(thread) = line.strip_prefix("Thread ") {
            tid = thread
                .split(' ')
                .next()
                .expect("a word")
                .parse()
                .expect("a number");
            theirs.insert(tid, Vec::new());
        } else if let (Some(frame), Some(frames)) =
            (line.strip_prefix("    "), theirs.get_mut(&tid))
        {
            let (name, place) = frame.rsplit_once(" (").expect("a place");
            let (file, number) = place
                .trim_end_matches(')')
                .rsplit_once(':')
                .expect("a line");
            frames.push(format!("{name}\t{file}\t{number}"));
        }
    }
    assert_eq!(seen(&mut Runtimes::default(), pid), theirs);
}

/// A changing stack is read completely or not at all: each result is one that can exist.
#[test]
fn a_stack_that_moves_is_never_a_mixture() {
    const PROGRAM: &str = "
def left(n):
    return left(n - 1) if n else 0
def right(n):
    return right(n - 1) if n else 0
print('done', flush=True)
while True:
    left(9)
    right(9)
";
    let Some((running, _folder)) = run("python3", "py", PROGRAM) else {
        return;
    };
    let pid = running.child.id() as i32;
    let mut runtimes = Runtimes::default();
    let (mut whole, begun) = (0, Instant::now());
    while whole < 300 && begun.elapsed() < Duration::from_secs(20) {
        for stack in seen(&mut runtimes, pid).values() {
            let names: Vec<&str> = stack
                .iter()
                .filter_map(|frame| frame.split('\t').next())
                .collect();
            let (last, inner) = names.split_last().expect("a frame");
            assert_eq!(*last, "<module>");
            let is_one = inner.windows(2).all(|pair| pair[0] == pair[1]);
            assert!(is_one && inner.len() <= 10, "{names:?}");
            whole += usize::from(!inner.is_empty());
        }
    }
    if whole < 300 {
        let torn = runtimes.share.budget.torn();
        skip(
            Need::Machine,
            format!("only {whole} stacks came whole, {torn} were torn"),
        );
    }
}

/// Of several threads, the one that computes holds the interpreter lock most of the time.
fn check_holder(interpreter: &str, suffix: &str, program: &str) {
    const ROUNDS: usize = 100;
    let Some((running, _folder)) = run(interpreter, suffix, program) else {
        return;
    };
    let pid = running.child.id() as i32;
    let mut runtimes = Runtimes::default();
    let mut held = BTreeMap::new();
    for _ in 0..ROUNDS {
        let (names, stacks) = runtimes.round(pid).expect("the interpreter is found");
        for (_, stack) in stacks.iter().filter(|(_, stack)| stack.is_holder) {
            let outermost = stack
                .frames
                .iter()
                .rev()
                .map(|frame| names.get(frame.function));
            let is_busy = outermost.flatten().any(|code| code.name.contains("busy"));
            *held.entry(is_busy).or_insert(0) += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // The others hold it briefly when they start.
    let (busy, idle) = (held.get(&true), held.get(&false).copied().unwrap_or(0));
    assert!(busy.is_some_and(|busy| *busy > idle), "{held:?}");
}

#[test]
fn who_computes_has_the_lock_of_python() {
    let program = "
import threading, time
def busy():
    number = 0
    while True:
        number += 1
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
threading.Thread(target=busy, daemon=True).start()
print('done', flush=True)
time.sleep(600)
";
    for interpreter in interpreters("WHYSLOW_PYTHONS", "python3") {
        check_holder(&interpreter, "py", program);
    }
}

#[test]
fn who_computes_has_the_lock_of_ruby() {
    let program = "
def busy
  number = 0
  number += 1 while true
end
3.times { Thread.new { Queue.new.pop } }
Thread.new { sleep 600 }
Thread.new { busy }
puts 'done'
STDOUT.flush
sleep 600
";
    for interpreter in interpreters("WHYSLOW_RUBIES", "ruby") {
        check_holder(&interpreter, "rb", program);
    }
}
