// The steps of infer_ownership: runs are found and told from disorder (inference.cpp), disorder is searched
// for periods (inference_cycles.cpp), and what was found is put down (inference_result.cpp).
#pragma once

#include <vector>

#include "policy/ownership.hpp"
#include "policy/segmentation.hpp"

namespace homing::policy {

class OwnershipBuilder {
  public:
    OwnershipBuilder(std::uint64_t pages, const Samples& samples, const InferenceOptions& options)
        : samples_(samples), options_(options), evidence_(samples, 0, samples.size(), true),
          result_(pages, samples.nodes()) {}

    Ownership build();

  private:
    // Samples [first, end) of one pattern.
    struct Draft {
        std::size_t first, end;
        Pattern pattern;
        Node node = unknown_node;
        std::uint32_t cycle = 0;
        double gain = 0; // pattern owned: by so much more likely than disorder (nats)
    };

    void segment();
    double gain_of(const Draft& draft) const;
    void justify();
    Node most_seen(const Draft& draft) const;
    void join_alike();
    void recheck_shared();
    bool shares(const Draft& draft) const;
    void close_borders();
    bool is_border_zone(const Draft& below, PageRange zone, const Draft& above) const;
    std::size_t cut_of(const Draft& below, PageRange zone, const Draft& above) const;
    void find_cycles();
    void search_cycles(std::size_t first, std::size_t end, double hint, std::vector<Draft>& found);
    double period_of_runs() const;
    double description_length(PageRange pages, double match, double miss, double penalty) const;
    void replace(const std::vector<Draft>& found);
    void resolve_stretches();
    Draft draft_of(const Segment& segment) const;
    void split_shared();
    void split_by_mix(const Draft& draft, std::vector<Draft>& into) const;
    // Samples by what they stand for, and those that a pattern explains.
    struct Agreement {
        double agreeing = 0, samples = 0;
        double share() const { return samples > 0 ? agreeing / samples : 0; }
        bool holds(double least) const { return agreeing + 1 >= least * samples; }
        Agreement& operator+=(const Agreement& other) {
            agreeing += other.agreeing;
            samples += other.samples;
            return *this;
        }
    };
    Agreement touches_of_owner(const Draft& draft, double most_touches) const;
    Agreement agreement(const Draft& draft) const;
    Node owner_in(const Draft& draft, std::size_t i) const;
    void drop_mixes();
    std::uint64_t border_before(std::size_t k, bool even) const;
    std::uint64_t even_border(std::size_t k) const;
    bool is_even() const;
    void emit_runs();
    void estimate_noise();
    void estimate_confidence();
    void describe(const Draft& draft, Run& run);
    void doubt();
    // One node has so many of its touches that the page counts as this node's.
    bool is_clear(std::size_t i) const { return samples_.share(i) >= clear_share; }
    bool seen_shared(std::size_t first, std::size_t end) const;
    NodeSet sharers(std::size_t first, std::size_t end) const;
    std::uint64_t first_page(const Draft& d) const { return samples_.page(d.first); }
    std::uint64_t end_page(const Draft& d) const { return samples_.page(d.end - 1) + 1; }

    static constexpr double clear_share = 0.6;

    const Samples& samples_;
    const InferenceOptions& options_;
    const Evidence evidence_;
    Ownership result_;
    std::vector<Draft> drafts_;
    double noise_ = 0.05;
};

} // namespace homing::policy
