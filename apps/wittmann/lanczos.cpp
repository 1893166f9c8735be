// A sparse eigenvalue solver, the first application in the outlook of Wittmann and Hager 2010 (section 4):
// Lanczos with full reorthogonalisation. Rows are cut into blocks of uneven work; each block's share of a
// step is a task that runs where its part of the matrix lies.
//
// Sums over all rows are added block by block in their order, so the digits are the same for every variant
// and any number of threads.
#include "app.hpp"
#include "matrix_market.hpp"
#include "tridiagonal.hpp"

#include <atomic>
#include <cstring>
#include <exception>
#include <functional>
#include <homing/tasks.hpp>
#include <memory>
#include <numbers>
#include <omp.h>
#include <string>

namespace {

using namespace wittmann;

/// Some rows: their part of the matrix, and of every vector.
struct Rows {
    long first = 0, last = 0;
    std::vector<long> begin; ///< of each row in what follows, and the end
    std::vector<int> columns;
    std::vector<double> values;
    std::vector<double> basis; ///< the Lanczos vectors' parts, one after the other
    int home = -1;
};

class Solver {
  public:
    enum class How { worksharing, tasks, queues };

    Solver(const Matrix& matrix, long block_rows, long steps, How how)
        : how_(how), rows_(matrix.rows), steps_(steps),
          blocks_(static_cast<std::size_t>((matrix.rows + block_rows - 1) / block_rows)),
          vector_(static_cast<std::size_t>(matrix.rows)), partial_(blocks_.size()) {
        std::vector<std::size_t> entry(blocks_.size() + 1, matrix.entries.size());
        for (std::size_t n = matrix.entries.size(); n-- > 0;)
            entry[static_cast<std::size_t>(matrix.entries[n].row / block_rows)] = n;
        for (std::size_t n = blocks_.size(); n-- > 0;)
            entry[n] = std::min(entry[n], entry[n + 1]); // a block of empty rows
        // First touch: a static distribution, each thread its blocks.
#pragma omp parallel for schedule(static)
        for (std::size_t n = 0; n < blocks_.size(); ++n) {
            Rows& rows = blocks_[n];
            rows.first = static_cast<long>(n) * block_rows;
            rows.last = std::min(rows.first + block_rows, rows_);
            std::size_t at = entry[n];
            for (long row = rows.first; row < rows.last; ++row) {
                rows.begin.push_back(static_cast<long>(rows.values.size()));
                for (; at < entry[n + 1] && matrix.entries[at].row == row; ++at) {
                    rows.columns.push_back(static_cast<int>(matrix.entries[at].column));
                    rows.values.push_back(matrix.entries[at].value);
                }
            }
            rows.begin.push_back(static_cast<long>(rows.values.size()));
            rows.basis.assign(static_cast<std::size_t>((rows.last - rows.first) * (steps + 1)), 0);
            rows.home = homing_domain_here(HOMING_BY_NODE);
        }
    }

    /// The Lanczos recurrence; returns how many steps it took (an invariant subspace ends it early).
    long run() {
        each([&](Rows& rows) { // a start that no symmetry of the matrix knows
            for (long row = rows.first; row < rows.last; ++row)
                part(rows, 0)[row - rows.first] = 1 + std::sin(1.0 + 0.7 * static_cast<double>(row));
        });
        scale(0, 1 / std::sqrt(dot(0, 0)));
        app_iterations_begin(steps_);
        long step = 0;
        for (; step < steps_; ++step) {
            app_iteration_begin();
            multiply(step);
            a.push_back(dot(step, step + 1));
            for (int twice = 0; twice < 2; ++twice)
                orthogonalise(step + 1);
            const double length = std::sqrt(dot(step + 1, step + 1));
            b.push_back(length);
            if (length > 0) scale(step + 1, 1 / length);
            app_iteration_end("off-diagonal", length);
            if (length < 1e-12 * std::fabs(a[0])) {
                ++step;
                break;
            }
        }
        app_iterations_end();
        return step;
    }

    /// |A y - value y| for the Ritz vector y of an eigenvalue of the tridiagonal matrix.
    double residual(double value) {
        const std::vector<double> weights = eigenvector(a, b, value);
        each([&](Rows& rows) {
            for (long row = 0; row < rows.last - rows.first; ++row) {
                double sum = 0;
                for (std::size_t step = 0; step < weights.size(); ++step)
                    sum += weights[step] * part(rows, static_cast<long>(step))[row];
                vector_[static_cast<std::size_t>(rows.first + row)] = sum;
            }
        });
        each([&](Rows& rows) {
            double sum = 0;
            for (long row = rows.first; row < rows.last; ++row) {
                const double difference = product(rows, row) - value * vector_[static_cast<std::size_t>(row)];
                sum += difference * difference;
            }
            partial(rows) = sum;
        });
        return std::sqrt(total());
    }

    std::size_t blocks() const { return blocks_.size(); }
    double at_home() const { return known_ ? static_cast<double>(home_) / static_cast<double>(known_) : 0; }
    std::vector<double> a, b;

  private:
    double* part(Rows& rows, long step) const { return rows.basis.data() + step * (rows.last - rows.first); }
    double& partial(const Rows& rows) { return partial_[static_cast<std::size_t>(&rows - blocks_.data())]; }
    double total() const {
        double sum = 0;
        for (const double value : partial_)
            sum += value;
        return sum;
    }
    double product(const Rows& rows, long row) const {
        const auto at = static_cast<std::size_t>(row - rows.first);
        double sum = 0;
        for (long n = rows.begin[at]; n < rows.begin[at + 1]; ++n)
            sum += rows.values[static_cast<std::size_t>(n)] *
                   vector_[static_cast<std::size_t>(rows.columns[static_cast<std::size_t>(n)])];
        return sum;
    }

    /// vector_ = the last Lanczos vector, whole; the next one = A times it.
    void multiply(long step) {
        each([&](Rows& rows) {
            std::memcpy(&vector_[static_cast<std::size_t>(rows.first)], part(rows, step),
                        static_cast<std::size_t>(rows.last - rows.first) * sizeof(double));
        });
        each([&](Rows& rows) {
            for (long row = rows.first; row < rows.last; ++row)
                part(rows, step + 1)[row - rows.first] = product(rows, row);
        });
    }

    double dot(long one, long other) {
        each([&](Rows& rows) {
            const double *x = part(rows, one), *y = part(rows, other);
            double sum = 0;
            for (long row = 0; row < rows.last - rows.first; ++row)
                sum += x[row] * y[row];
            partial(rows) = sum;
        });
        return total();
    }

    void scale(long step, double factor) {
        each([&](Rows& rows) {
            double* x = part(rows, step);
            for (long row = 0; row < rows.last - rows.first; ++row)
                x[row] *= factor;
        });
    }

    /// Against all earlier vectors at once (classical Gram-Schmidt; done twice it is as good as the modified
    /// one).
    void orthogonalise(long step) {
        projections_.resize(blocks_.size() * static_cast<std::size_t>(step));
        each([&](Rows& rows) {
            double* out = &projections_[static_cast<std::size_t>(&rows - blocks_.data()) *
                                        static_cast<std::size_t>(step)];
            const double* y = part(rows, step);
            for (long k = 0; k < step; ++k) {
                const double* x = part(rows, k);
                out[k] = 0;
                for (long row = 0; row < rows.last - rows.first; ++row)
                    out[k] += x[row] * y[row];
            }
        });
        std::vector<double> sums(static_cast<std::size_t>(step), 0);
        for (std::size_t n = 0; n < blocks_.size(); ++n)
            for (std::size_t k = 0; k < sums.size(); ++k)
                sums[k] += projections_[n * sums.size() + k];
        each([&](Rows& rows) {
            double* y = part(rows, step);
            for (long k = 0; k < step; ++k) {
                const double* x = part(rows, k);
                for (long row = 0; row < rows.last - rows.first; ++row)
                    y[row] -= sums[static_cast<std::size_t>(k)] * x[row];
            }
        });
    }

    /// One task a block.
    void each(const std::function<void(Rows&)>& work) {
        const auto run_block = [&](Rows* rows) {
            work(*rows);
            known_.fetch_add(1, std::memory_order_relaxed);
            if (homing_domain_here(HOMING_BY_NODE) == rows->home)
                home_.fetch_add(1, std::memory_order_relaxed);
        };
        if (how_ == How::worksharing) {
#pragma omp parallel for schedule(static)
            for (std::size_t n = 0; n < blocks_.size(); ++n)
                run_block(&blocks_[n]);
        } else if (how_ == How::tasks) {
#pragma omp parallel
#pragma omp single
            for (Rows& rows : blocks_) {
                Rows* const mine = &rows;
#pragma omp task firstprivate(mine)
                run_block(mine);
            }
        } else {
            for (Rows& rows : blocks_)
                queues_.put(&rows, rows.home);
#pragma omp parallel
#pragma omp single
            homing::run_omp_tasks(queues_, run_block);
        }
    }

    How how_;
    long rows_, steps_;
    std::vector<Rows> blocks_;
    std::vector<double> vector_, partial_, projections_;
    homing::LocalityQueues<Rows*> queues_;
    std::atomic<long> home_{0}, known_{0};
};

/// Of the Laplace operator, in ascending order.
double laplace_eigenvalue(long side, long rank) {
    std::vector<double> values;
    for (long p = 1; p <= side; ++p)
        for (long q = 1; q <= side; ++q)
            values.push_back(
                4 - 2 * std::cos(static_cast<double>(p) * std::numbers::pi / static_cast<double>(side + 1)) -
                2 * std::cos(static_cast<double>(q) * std::numbers::pi / static_cast<double>(side + 1)));
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(rank < 0 ? static_cast<long>(values.size()) + rank : rank)];
}

int run(int argc, char** argv) {
    // The matrix file is the one argument without an option.
    std::string path;
    std::vector<char*> words;
    for (int n = 0; n < argc; ++n) {
        if (n > 0 && std::strcmp(argv[n], "--matrix") == 0 && n + 1 < argc)
            path = argv[++n];
        else
            words.push_back(argv[n]);
    }
    words.push_back(nullptr);
    app_begin("lanczos", static_cast<int>(words.size()) - 1, words.data());
    const long side = app_integer_option("--laplace", 120, 2, 20000,
                                         "no --matrix FILE: the Laplace operator on N x N points");
    const long steps = app_integer_option("--steps", 150, 2, 100000, "at most");
    const long block_rows = app_integer_option("--block-rows", 400, 1, 1L << 30, "rows of a task");
    const int how = app_choice_option("--variant", 2, "static|tasks|queues",
                                      "worksharing, OpenMP tasks, locality queues");
    app_options_end();

    const Matrix matrix = path.empty() ? laplace(side) : read_matrix_market(path);
    Solver solver(matrix, block_rows, std::min(steps, matrix.rows), static_cast<Solver::How>(how));
    char text[160];
    std::snprintf(text, sizeof text, "%ld rows, %zu nonzeros, %zu blocks", matrix.rows, matrix.entries.size(),
                  solver.blocks());
    app_describe(text,
                 static_cast<long>(matrix.entries.size() * 12 +
                                   static_cast<std::size_t>(matrix.rows * (steps + 2)) * 8),
                 APP_PARALLEL, omp_get_max_threads());
    const long done = solver.run();
    solver.b.resize(static_cast<std::size_t>(done - 1));
    const double largest = eigenvalue(solver.a, solver.b, done - 1);
    const double smallest = eigenvalue(solver.a, solver.b, 0);
    const double error = solver.residual(largest);
    std::printf("time home: %.4f of the tasks\n", solver.at_home());
    app_result_integer("steps", done);
    app_result("largest eigenvalue", largest);
    app_result("smallest Ritz value", smallest);
    std::printf("time residual of the largest: %.3e\n", error);
    // By Parlett's theorem an eigenvalue lies within the residual of the Ritz value.
    if (path.empty()) {
        const double exact = laplace_eigenvalue(side, -1);
        app_finish(std::fabs(largest - exact) <= std::max(error, 1e-12 * exact) * 1.01 ? APP_SUCCESSFUL
                                                                                       : APP_FAILED);
    } else {
        app_finish(error <= 0.01 * std::fabs(largest) ? APP_SUCCESSFUL : APP_FAILED);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        app_error(error.what());
    }
}
