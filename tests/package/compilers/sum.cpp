#include <cstdio>
#include <vector>

int main() {
    std::vector<double> x(1 << 16);
    double sum = 0;
    const int n = static_cast<int>(x.size());
#pragma omp parallel for
    for (int i = 0; i < n; ++i)
        x[static_cast<std::size_t>(i)] = i;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i)
        sum += x[static_cast<std::size_t>(i)];
    std::printf("sum %.0f\n", sum);
}
