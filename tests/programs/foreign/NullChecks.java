// Null checks that the virtual machine leaves to the hardware: each is a SIGSEGV that its handler takes.
public class NullChecks {
    static class Cell {
        int value;
    }

    static int read(Cell cell) {
        return cell.value;
    }

    public static void main(String[] arguments) throws Exception {
        long sum = 0, caught = 0;
        Cell cell = new Cell();
        cell.value = 3;
        for (int i = 0; i < 200000; i++) {
            sum += read(cell); // until it is compiled
        }
        for (int i = 0; i < 2000; i++) {
            try {
                sum += read(i % 2 == 0 ? null : cell);
            } catch (NullPointerException nothing) {
                caught++;
            }
        }
        Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> deep(0));
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.gc();
        System.out.println(sum + " " + caught);
    }

    // A stack that overflows: guard pages, and the same signal.
    static void deep(int depth) {
        try {
            deep(depth + 1);
        } catch (StackOverflowError end) {
            return;
        }
    }
}
