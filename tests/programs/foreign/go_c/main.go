// A Go program that calls C, while its own threads are signalled by the runtime. With OpenMP where CGO_CFLAGS and
// CGO_LDFLAGS have -fopenmp.
package main

// #include <stdlib.h>
// static double work(long n, int iterations) {
//   double *a = malloc(n * sizeof *a), sum = 0;
//   for (long i = 0; i < n; i++) a[i] = i % 97;
//   for (int k = 0; k < iterations; k++) {
//     _Pragma("omp parallel for")
//     for (long i = 0; i < n; i++) a[i] = a[i] * 1.0001 + 1;
//   }
//   for (long i = 0; i < n; i++) sum += a[i];
//   free(a);
//   return sum;
// }
import "C"

import (
	"fmt"
	"runtime"
	"sync"
)

type cell struct{ value int }

// A null pointer, which the runtime finds by a fault.
func fault(p *cell) (caught bool) {
	defer func() { caught = recover() != nil }()
	p.value++
	return
}

func main() {
	var wait sync.WaitGroup
	sum, faults := 0, 0
	var lock sync.Mutex
	for t := 0; t < 4; t++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for k := 0; k < 20; k++ {
				y := 0
				for i := 0; i < 2000000; i++ { // long enough to be preempted by a signal
					y += i % 3
				}
				lock.Lock()
				sum += y + len(make([]byte, 100000))
				if fault(nil) {
					faults++
				}
				lock.Unlock()
			}
		}()
	}
	result := float64(C.work(1000000, 30))
	runtime.GC()
	wait.Wait()
	fmt.Printf("%.3f %d %d\n", result, sum, faults)
}
