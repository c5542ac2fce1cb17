/*
 * Copyright 2026 robotid_ros maintainers
 *
 * Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
 * the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
 *
 * Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
 * "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
 * specific language governing permissions and limitations under the License.
 */

/*
 * Vectors of LANES samples, by the compiler's vector extension, and what the compiled kernels need of them.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#define STREAMS 1 /* Stores past the caches need AVX-512 here; without them the copy costs more than it saves. */
#else
#define STREAMS 0
#endif

#if defined(LANES)
/* One, for functions of one sample: vectors whose other lanes are thrown away cost up to twice as much. */
#elif defined(__AVX512F__)
#define LANES 8
#elif defined(__AVX__)
#define LANES 4
#else
#define LANES 2
#endif
typedef double vec __attribute__((vector_size(8 * LANES)));
typedef long long ivec __attribute__((vector_size(8 * LANES)));

static inline vec splat(double x) { return x - (vec){0}; }

/* Sine and cosine: reduction to [-pi/4, pi/4] in three parts, Taylor series whose next term is below 5e-17. */
static inline void sine_cosine(vec x, vec *sine, vec *cosine)
{
    const double magic = 6755399441055744.0;
    int large = 0;
    for (int k = 0; k < LANES; ++k) {
        large |= !(x[k] < 1.0e5 && x[k] > -1.0e5);
    }
    if (__builtin_expect(large, 0)) {
        vec s = {0}, c = {0};
        for (int k = 0; k < LANES; ++k) {
            s[k] = sin(x[k]);
            c[k] = cos(x[k]);
        }
        *sine = s;
        *cosine = c;
        return;
    }
    vec shifted = x * 0x1.45f306dc9c883p-1 + magic;
    ivec quadrant = (ivec)shifted;
    vec turns = shifted - magic;
    vec r = ((x - turns * 0x1.921fb544p+0) - turns * 0x1.0b4611a6p-34) - turns * 0x1.3198a2e037073p-69;
    vec r2 = r * r;
    vec s = r2 * (-1.0 / 1307674368000.0) + 1.0 / 6227020800.0;
    s = s * r2 - 1.0 / 39916800.0;
    s = s * r2 + 1.0 / 362880.0;
    s = s * r2 - 1.0 / 5040.0;
    s = s * r2 + 1.0 / 120.0;
    s = s * r2 - 1.0 / 6.0;
    s = s * (r2 * r) + r;
    vec c = r2 * (1.0 / 20922789888000.0) - 1.0 / 87178291200.0;
    c = c * r2 + 1.0 / 479001600.0;
    c = c * r2 - 1.0 / 3628800.0;
    c = c * r2 + 1.0 / 40320.0;
    c = c * r2 - 1.0 / 720.0;
    c = c * r2 + 1.0 / 24.0;
    c = c * (r2 * r2) + (1.0 - 0.5 * r2);
    ivec odd = -(quadrant & 1);
    ivec s_bits = ((ivec)s & ~odd) | ((ivec)c & odd);
    ivec c_bits = ((ivec)c & ~odd) | ((ivec)s & odd);
    *sine = (vec)(s_bits ^ ((quadrant & 2) << 62));
    *cosine = (vec)(c_bits ^ (((quadrant + 1) & 2) << 62));
}

static inline vec sign_of(vec x)
{
    const vec zero = {0};
    ivec above = x > zero, below = x < zero;
    return (vec)((above & (ivec)splat(1.0)) | (below & (ivec)splat(-1.0)));
}

/* Write LANES samples, given as rows of one vector per column, as one contiguous row per sample. */
static inline void store_samples(const vec *restrict from, double *restrict to, long width)
{
    long c = 0;
#if defined(__GNUC__) && !defined(__clang__) && LANES > 2
    for (; c + LANES <= width; c += LANES) {
        vec r[LANES];
        for (int k = 0; k < LANES; ++k) {
            r[k] = from[c + k];
        }
#pragma GCC unroll 3
        for (int step = 1; step < LANES; step *= 2) {
            ivec low, high;
            for (int k = 0; k < LANES; ++k) {
                low[k] = (k & step) ? LANES + k - step : k;
                high[k] = (k & step) ? LANES + k : k + step;
            }
#pragma GCC unroll 8
            for (int k = 0; k < LANES; ++k) {
                if (!(k & step)) {
                    const vec a = r[k], b = r[k + step];
                    r[k] = __builtin_shuffle(a, b, low);
                    r[k + step] = __builtin_shuffle(a, b, high);
                }
            }
        }
        for (int k = 0; k < LANES; ++k) {
            memcpy(to + k * width + c, &r[k], sizeof(vec));
        }
    }
#endif
    for (; c < width; ++c) {
        for (int k = 0; k < LANES; ++k) {
            to[k * width + c] = from[c][k];
        }
    }
}

/* Copy past the caches: an array larger than they are would only be read into them to be overwritten. */
static inline void stream(const double *restrict from, double *restrict to, long count)
{
    long k = 0;
#if defined(__AVX512F__)
    for (; k < count && ((uintptr_t)(to + k) & 63); ++k) {
        to[k] = from[k];
    }
    for (; k + 8 <= count; k += 8) {
        _mm512_stream_pd(to + k, _mm512_loadu_pd(from + k));
    }
#endif
    for (; k < count; ++k) {
        to[k] = from[k];
    }
}

static inline void finish_stream(void)
{
#if defined(__AVX512F__)
    _mm_sfence();
#endif
}

/* Column c of LANES samples that stand row by row, w numbers a row. */
#if LANES == 8
#define GATHER(p, w, c) \
    (vec){p[c], p[w + c], p[2 * w + c], p[3 * w + c], p[4 * w + c], p[5 * w + c], p[6 * w + c], p[7 * w + c]}
#elif LANES == 4
#define GATHER(p, w, c) (vec){p[c], p[w + c], p[2 * w + c], p[3 * w + c]}
#elif LANES == 2
#define GATHER(p, w, c) (vec){p[c], p[w + c]}
#else
#define GATHER(p, w, c) (vec){p[c]}
#endif
