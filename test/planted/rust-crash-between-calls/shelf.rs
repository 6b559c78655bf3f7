// The shelf of ../crash-between-writes (see there) in Rust: the same requests, files and bug, and one thread per
// connection.
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

const BOXES: usize = 4096;

struct Shelf {
    values: Vec<u32>,
    generation: u64,
    index: File,
    store: File,
    journal: File,
}

fn open(path: &str, append: bool) -> File {
    OpenOptions::new().read(true).write(!append).append(append).create(true).open(path).unwrap()
}

impl Shelf {
    fn recover() -> Shelf {
        let mut s = Shelf {
            values: vec![0; BOXES],
            generation: 1,
            index: open("index", false),
            store: open("boxes", false),
            journal: open("journal", true),
        };
        let mut head = [0u8; 16];
        if let Ok(16) = s.index.read_at(&mut head, 0) {
            s.generation = u64::from_le_bytes(head[..8].try_into().unwrap());
        }
        let mut raw = vec![0u8; BOXES * 4];
        if s.store.read_exact_at(&mut raw, 0).is_ok() {
            for i in 0..BOXES {
                s.values[i] = u32::from_le_bytes(raw[i * 4..i * 4 + 4].try_into().unwrap());
            }
        }
        let mut data = Vec::new();
        s.journal.read_to_end(&mut data).unwrap();
        for r in data.chunks_exact(16) {
            if u64::from_le_bytes(r[..8].try_into().unwrap()) >= s.generation {
                let number = u32::from_le_bytes(r[8..12].try_into().unwrap()) as usize;
                s.values[number] = u32::from_le_bytes(r[12..].try_into().unwrap());
            }
        }
        s
    }

    fn put(&mut self, at: usize, value: u32) -> bool {
        let mut r = [0u8; 16];
        r[..8].copy_from_slice(&self.generation.to_le_bytes());
        r[8..12].copy_from_slice(&(at as u32).to_le_bytes());
        r[12..].copy_from_slice(&value.to_le_bytes());
        if self.journal.write_all(&r).is_err() {
            return false;
        }
        self.values[at] = value;
        true
    }

    // The bug: the index is written first. From then on the journal is invalid, but the boxes are not written yet.
    fn checkpoint(&mut self) -> bool {
        let mut head = [0u8; 16];
        head[..8].copy_from_slice(&(self.generation + 1).to_le_bytes());
        if self.index.write_all_at(&head, 0).is_err() {
            return false;
        }
        self.generation += 1;
        let mut raw = vec![0u8; BOXES * 4];
        for _ in 0..4000 {  // slow, like a real checkpoint of a million boxes
            for i in 0..BOXES {
                raw[i * 4..i * 4 + 4].copy_from_slice(&std::hint::black_box(self.values[i]).to_le_bytes());
            }
        }
        if self.store.write_all_at(&raw, 0).is_err() {
            return false;
        }
        self.journal.set_len(0).is_ok()
    }
}

fn serve(shelf: Arc<Mutex<Shelf>>, c: TcpStream) {
    let mut out = c.try_clone().unwrap();
    for line in BufReader::new(c).lines() {
        let Ok(line) = line else { return };
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut s = shelf.lock().unwrap();
        let reply = match words[..] {
            ["put", b, v] if s.put(b.parse().unwrap(), v.parse().unwrap()) => "ok".to_string(),
            ["get", b] => s.values[b.parse::<usize>().unwrap()].to_string(),
            ["checkpoint"] if s.checkpoint() => "ok".to_string(),
            _ => "error".to_string(),
        };
        drop(s);
        if out.write_all(format!("{}\n", reply).as_bytes()).is_err() {
            return;
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    std::env::set_current_dir(&args[2]).unwrap();
    let shelf = Arc::new(Mutex::new(Shelf::recover()));
    for c in TcpListener::bind(format!("{}:7000", args[1])).unwrap().incoming() {
        let shelf = shelf.clone();
        std::thread::spawn(move || serve(shelf, c.unwrap()));
    }
}
