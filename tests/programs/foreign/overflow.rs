// A stack that overflows: Rust's runtime has a handler of SIGSEGV on an alternate stack in each thread, which
// says so and ends the process.
fn deep(depth: u64) -> u64 {
    let room = [depth; 64];
    std::hint::black_box(&room);
    if depth == u64::MAX { 0 } else { deep(depth + 1) + room[3] }
}

fn main() {
    let sums: Vec<u64> = (0..4u64)
        .map(|i| std::thread::spawn(move || (0..1000).map(|k| k * i).sum::<u64>()))
        .map(|thread| thread.join().unwrap())
        .collect();
    println!("{sums:?}");
    std::thread::Builder::new().name("deep".into()).spawn(|| deep(0)).unwrap().join().unwrap();
}
