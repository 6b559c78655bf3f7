// victim.c in Rust.
use std::fs::File;
use std::io::{Read, Write};

struct Victim {
    file: File,
}

impl Victim {
    #[inline(never)]
    fn step(&mut self, n: i32) {
        let mut byte = [0u8; 1];
        let line = match self.file.read(&mut byte) {
            Ok(_) => format!("read {} = ok\n", n),
            Err(e) if e.raw_os_error() == Some(5) => format!("read {} = Input/output error\n", n),
            Err(e) => format!("read {} = {}\n", n, e),
        };
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    while std::fs::metadata(&arguments[2]).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let mut victim = Victim { file: File::open(&arguments[1]).unwrap() };
    for n in 1..6 {
        victim.step(n);
    }
    println!("done");
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}
