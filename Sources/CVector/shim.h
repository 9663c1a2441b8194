// What Swift cannot say: a function for processors that have more than the oldest one of their kind.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>

// Whether this processor has what tutti_filter is compiled for.
static inline _Bool tutti_has_fused_multiply_add(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

struct tutti_stereo_sample { float left, right; };
struct tutti_stereo_pair { struct tutti_stereo_sample first, second; };

#define TUTTI_FUSED \
    __attribute__((target("avx2,fma"), swift_attr("@_noLocks"), swift_attr("@_noAllocation")))

// Lagrange's weights of the rows at -1, 0, 1, 2 for the place `u`, by Horner's rule; twice.
TUTTI_FUSED static inline __m256 tutti_weights(double u) {
    __m256d at = _mm256_set1_pd(u), w = _mm256_set_pd(1.0 / 6, -0.5, 0.5, -1.0 / 6);
    w = _mm256_fmadd_pd(w, at, _mm256_set_pd(0, 0.5, -1, 0.5));
    w = _mm256_fmadd_pd(w, at, _mm256_set_pd(-1.0 / 6, 1, -0.5, -1.0 / 3));
    w = _mm256_fmadd_pd(w, at, _mm256_set_pd(0, 0, 1, 0));
    __m128 weights = _mm256_cvtpd_ps(w);
    return _mm256_set_m128(weights, weights);
}

// One stereo frame of a filter that lies `u` (0 to 1) between the second and the third of four rows of
// `taps` (a multiple of 8) coefficients: each channel times the cubic through the rows.
TUTTI_FUSED static inline struct tutti_stereo_sample tutti_filter(
    const float *row, long taps, double u, const float *left, const float *right) {
    __m256 w = tutti_weights(u);
    __m256 w0 = _mm256_permute_ps(w, 0x00), w1 = _mm256_permute_ps(w, 0x55);
    __m256 w2 = _mm256_permute_ps(w, 0xAA), w3 = _mm256_permute_ps(w, 0xFF);
    __m256 l = _mm256_setzero_ps(), r = _mm256_setzero_ps();
    for (long i = 0; i < taps; i += 8, row += 8) {
        __m256 h = _mm256_mul_ps(_mm256_loadu_ps(row), w0);
        h = _mm256_fmadd_ps(_mm256_loadu_ps(row + taps), w1, h);
        h = _mm256_fmadd_ps(_mm256_loadu_ps(row + 2 * taps), w2, h);
        h = _mm256_fmadd_ps(_mm256_loadu_ps(row + 3 * taps), w3, h);
        l = _mm256_fmadd_ps(_mm256_loadu_ps(left + i), h, l);
        r = _mm256_fmadd_ps(_mm256_loadu_ps(right + i), h, r);
    }
    __m256 pairs = _mm256_hadd_ps(l, r);
    __m256 fours = _mm256_hadd_ps(pairs, pairs);
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
    return (struct tutti_stereo_sample){sum[0], sum[1]};
}

// Two of them that lie between the same rows, at `u` and, `step` input frames further, at `v`: the same
// sums to the last bit, for one reading of the rows.
TUTTI_FUSED static inline struct tutti_stereo_pair tutti_filter_pair(
    const float *row, long taps, double u, double v, long step, const float *left,
    const float *right) {
    __m256 w = tutti_weights(u), z = tutti_weights(v);
    __m256 w0 = _mm256_permute_ps(w, 0x00), w1 = _mm256_permute_ps(w, 0x55);
    __m256 w2 = _mm256_permute_ps(w, 0xAA), w3 = _mm256_permute_ps(w, 0xFF);
    __m256 z0 = _mm256_permute_ps(z, 0x00), z1 = _mm256_permute_ps(z, 0x55);
    __m256 z2 = _mm256_permute_ps(z, 0xAA), z3 = _mm256_permute_ps(z, 0xFF);
    __m256 l = _mm256_setzero_ps(), r = l, left_v = l, right_v = l;
    for (long i = 0; i < taps; i += 8, row += 8) {
        __m256 row0 = _mm256_loadu_ps(row), row1 = _mm256_loadu_ps(row + taps);
        __m256 row2 = _mm256_loadu_ps(row + 2 * taps), row3 = _mm256_loadu_ps(row + 3 * taps);
        __m256 h = _mm256_fmadd_ps(row1, w1, _mm256_mul_ps(row0, w0));
        __m256 h_v = _mm256_fmadd_ps(row1, z1, _mm256_mul_ps(row0, z0));
        h = _mm256_fmadd_ps(row3, w3, _mm256_fmadd_ps(row2, w2, h));
        h_v = _mm256_fmadd_ps(row3, z3, _mm256_fmadd_ps(row2, z2, h_v));
        l = _mm256_fmadd_ps(_mm256_loadu_ps(left + i), h, l);
        r = _mm256_fmadd_ps(_mm256_loadu_ps(right + i), h, r);
        left_v = _mm256_fmadd_ps(_mm256_loadu_ps(left + step + i), h_v, left_v);
        right_v = _mm256_fmadd_ps(_mm256_loadu_ps(right + step + i), h_v, right_v);
    }
    __m256 fours = _mm256_hadd_ps(_mm256_hadd_ps(l, r), _mm256_hadd_ps(left_v, right_v));
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
    return (struct tutti_stereo_pair){{sum[0], sum[1]}, {sum[2], sum[3]}};
}

#undef TUTTI_FUSED
#endif
