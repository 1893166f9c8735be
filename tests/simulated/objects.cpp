// Exceptions, virtual calls, containers and small vectors in C++.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square final : Shape {
    explicit Square(double given) : side(given) {}
    double area() const override { return side * side; }
    double side;
};
struct Four {
    double x, y, z, w;
};

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 2000; ++i)
        shapes.push_back(std::make_unique<Square>(i));
    std::vector<Four> fours(40000, Four{1, 2, 3, 4});
    std::vector<Four> copy = fours;
    double sum = 0;
    int caught = 0;
#pragma omp parallel for reduction(+ : sum, caught)
    for (int i = 0; i < 2000; ++i) {
        try {
            if (i % 100 == 0) throw std::runtime_error("every hundredth");
            sum += shapes[static_cast<std::size_t>(i)]->area() + copy[static_cast<std::size_t>(i)].w;
        } catch (const std::runtime_error&) {
            ++caught;
        }
    }
    std::printf("%.17g %d\n", sum, caught);
}
