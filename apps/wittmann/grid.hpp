// Two grids that exchange their roles, cut into blocks; the six-point Jacobi sweep of Wittmann and Hager
// 2010, section 1.4: F'(i,j,k) = c * (sum of the six neighbours), k the fastest index, blocks as long as the
// grid in k.
//
// The boundary is zero and the start is sin(x) sin(y) sin(z), an eigenvector of the sweep: after m sweeps
// with c = 1/6 every site must hold lambda^m times its start but for rounding, which is what check() looks
// at.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace wittmann {

struct Size {
    long k = 600, j = 600, i = 2400;
    long sites() const { return k * j * i; }
};

/// A block: [j0, j1) x [i0, i1) of the interior, all of k; and what is known about it.
struct Block {
    long j0 = 0, j1 = 0, i0 = 0, i1 = 0;
    int home = -1; ///< locality domain of its pages
    long sites(const Size& size) const { return (size.k - 2) * (j1 - j0) * (i1 - i0); }
};

enum class Stores { nontemporal, normal };

class Grid {
  public:
    /// block_j, block_i: sites of a block. Memory is reserved, not touched.
    Grid(Size size, long block_j, long block_i, Stores stores);

    const Size& size() const { return size_; }
    long blocks_j() const { return blocks_j_; }
    long blocks_i() const { return blocks_i_; }
    long count() const { return blocks_j_ * blocks_i_; }
    /// Blocks are numbered with jb fastest: the order "ijk" of the paper.
    Block& block(long number) { return blocks_[static_cast<std::size_t>(number)]; }
    const Block& block(long number) const { return blocks_[static_cast<std::size_t>(number)]; }
    /// The n-th block of a submission order: "ijk" runs through jb first, "kji" through ib first.
    long in_order(long n, bool kji) const { return kji ? n / blocks_i_ + n % blocks_i_ * blocks_j_ : n; }

    /// First touch of a block in both grids (boundary sites with their neighbours').
    void fill(const Block& block);
    /// One update of every site of a block, from one grid to the other.
    void sweep(const Block& block) const { step(block, false); }
    /// The same; `back`: from the other grid to the one.
    void step(const Block& block, bool back) const;
    /// After all blocks of a sweep.
    void exchange() { std::swap(from_, to_); }

    /// The largest distance of a site from lambda^sweeps times its start.
    double check(long sweeps) const;
    /// A sum over all sites in a fixed order.
    double checksum() const;

    long bytes() const { return 2 * size_.sites() * static_cast<long>(sizeof(double)); }
    /// Of both grids, all of them: for placement.
    double* begin(int which) const { return which ? to_ : from_; }
    long grid_bytes() const { return size_.sites() * static_cast<long>(sizeof(double)); }
    /// A block's memory that is contiguous: its lines of plane i, in the grid that is read.
    const double* lines(const Block& block, long i) const { return from_ + at(i, block.j0, 0); }
    std::size_t line_bytes(const Block& block) const {
        return static_cast<std::size_t>((block.j1 - block.j0) * size_.k) * sizeof(double);
    }

  private:
    std::size_t at(long i, long j, long k) const {
        return (static_cast<std::size_t>(i) * static_cast<std::size_t>(size_.j) +
                static_cast<std::size_t>(j)) *
                   static_cast<std::size_t>(size_.k) +
               static_cast<std::size_t>(k);
    }
    double start(long i, long j, long k) const;

    struct Free {
        void operator()(double* memory) const { std::free(memory); }
    };
    Size size_;
    Stores stores_;
    long blocks_j_, blocks_i_;
    std::vector<Block> blocks_;
    std::vector<double> sine_[3]; ///< by i, j, k; zero on the boundary
    std::unique_ptr<double, Free> memory_[2];
    double* from_;
    double* to_;
};

} // namespace wittmann
