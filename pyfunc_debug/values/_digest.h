/* A 128-bit digest of numbers in memory, in their order: equal content, equal digest, on every machine.
 *
 * Sums of 32 x 32 bit products with keys that differ from place to place, the way of XXH3 (Yann Collet), written anew and
 * simpler: eight lanes of 64 bits, stirred every 1024 bytes. Not cryptographic: content can be made to collide on purpose.
 * Two different values that were not made to collide share a digest with a probability of about 2^-64.
 */

#ifndef PYFUNC_DEBUG_DIGEST_H
#define PYFUNC_DEBUG_DIGEST_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

enum { DIGEST_BYTES = 16, STRIPE = 64, LANES = 8, STRIPES = 16 /* between two stirs */ };

typedef struct {
    uint64_t lanes[LANES], length;
    unsigned at; /* the next stripe's place between two stirs */
} Digest;

/* One for each word between two stirs, and those of the stir. */
static uint64_t digest_keys[(STRIPES + 1) * LANES];

#define STIR_PRIME 0x9e3779b1u

/* SplitMix64 (Sebastiano Vigna, public domain). */
static uint64_t digest_mix(uint64_t word) {
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* Once, before anything else. */
static void digest_prepare(void) {
    for (int i = 0; i < (STRIPES + 1) * LANES; i++) digest_keys[i] = digest_mix((uint64_t)i * 0x9e3779b97f4a7c15u);
}

static void digest_start(Digest *digest) { memset(digest, 0, sizeof *digest); }

/* How floats with several bit patterns for what they are, -0.0 and NaN, are told from others while they are read:
 * `size` takes the sign away, `limit` is what NaN and Inf are not below then, and `sign` finds what may be -0.0. Of
 * doubles only the upper half is looked at. For other numbers `limit` is reached by none. */
typedef struct {
    uint64_t size, sign;
    uint32_t limit;
} Odd;

static const Odd odd_none = {0, 0, 0xffffffffu}, odd_float = {0x7fffffff7fffffffu, ~(uint64_t)0, 0x7f800000u},
                 odd_double = {0x7fffffff00000000u, 0xffffffff00000000u, 0x7ff00000u};

static int odd_half(uint32_t size, uint32_t sign, uint32_t limit) { return size >= limit || sign == 0x80000000u; }

/* Returns whether a float among them may be odd. */
static int add_stripes(uint64_t *lanes, const unsigned char *from, const uint64_t *keys, size_t stripes, const Odd *odd) {
    int found = 0;
    for (size_t i = 0; i < stripes * LANES; i++) {
        uint64_t word;
        memcpy(&word, from + 8 * i, sizeof word);
        uint64_t mixed = word ^ keys[i], size = word & odd->size, sign = word & odd->sign;
        found |= odd_half((uint32_t)size, (uint32_t)sign, odd->limit);
        found |= odd_half((uint32_t)(size >> 32), (uint32_t)(sign >> 32), odd->limit);
        lanes[(i % LANES) ^ 1] += word;
        lanes[i % LANES] += (mixed & 0xffffffffu) * (mixed >> 32);
    }
    return found;
}

/* Makes what came before count in its order: sums alone would not. */
static void digest_stir(uint64_t *lanes) {
    for (int i = 0; i < LANES; i++)
        lanes[i] = (lanes[i] ^ (lanes[i] >> 47) ^ digest_keys[STRIPES * LANES + i]) * STIR_PRIME;
}

/* Whole stripes; returns whether a float among them may be odd. */
static int take_stripes(Digest *digest, const unsigned char *from, size_t stripes, const Odd *odd) {
    int found = 0;
    while (stripes) {
        size_t here = STRIPES - digest->at;
        if (here > stripes) here = stripes;
        found |= add_stripes(digest->lanes, from, digest_keys + LANES * digest->at, here, odd);
        digest->at += (unsigned)here, from += here * STRIPE, stripes -= here;
        if (digest->at == STRIPES) digest_stir(digest->lanes), digest->at = 0;
    }
    return found;
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same with 256 bits at once. */
__attribute__((target("avx2")))
static int take_stripes_avx2(Digest *digest, const unsigned char *from, size_t stripes, const Odd *odd) {
    const __m256i size = _mm256_set1_epi64x((long long)odd->size), sign = _mm256_set1_epi64x((long long)odd->sign);
    const __m256i *stir_keys = (const __m256i *)(const void *)(digest_keys + STRIPES * LANES);
    const __m256i key0 = _mm256_loadu_si256(stir_keys), key1 = _mm256_loadu_si256(stir_keys + 1);
    const __m256i prime = _mm256_set1_epi64x(STIR_PRIME);
    __m256i *lanes = (__m256i *)(void *)digest->lanes;
    __m256i lanes0 = _mm256_loadu_si256(lanes), lanes1 = _mm256_loadu_si256(lanes + 1);
    __m256i most = _mm256_setzero_si256(), least = most;
    unsigned at = digest->at;
    for (size_t i = 0; i < stripes; i++) {
        const __m256i *words = (const __m256i *)(const void *)(from + STRIPE * i);
        const __m256i *keys = (const __m256i *)(const void *)(digest_keys + LANES * at);
        __m256i word0 = _mm256_loadu_si256(words), word1 = _mm256_loadu_si256(words + 1);
        __m256i mixed0 = _mm256_xor_si256(word0, _mm256_loadu_si256(keys));
        __m256i mixed1 = _mm256_xor_si256(word1, _mm256_loadu_si256(keys + 1));
        __m256i sizes = _mm256_max_epu32(_mm256_and_si256(word0, size), _mm256_and_si256(word1, size));
        __m256i signs = _mm256_min_epi32(_mm256_and_si256(word0, sign), _mm256_and_si256(word1, sign));
        most = _mm256_max_epu32(most, sizes), least = _mm256_min_epi32(least, signs);
        lanes0 = _mm256_add_epi64(lanes0, _mm256_mul_epu32(mixed0, _mm256_srli_epi64(mixed0, 32)));
        lanes1 = _mm256_add_epi64(lanes1, _mm256_mul_epu32(mixed1, _mm256_srli_epi64(mixed1, 32)));
        lanes0 = _mm256_add_epi64(lanes0, _mm256_shuffle_epi32(word0, 0x4e));
        lanes1 = _mm256_add_epi64(lanes1, _mm256_shuffle_epi32(word1, 0x4e));
        if (++at == STRIPES) {
            lanes0 = _mm256_xor_si256(_mm256_xor_si256(lanes0, _mm256_srli_epi64(lanes0, 47)), key0);
            lanes1 = _mm256_xor_si256(_mm256_xor_si256(lanes1, _mm256_srli_epi64(lanes1, 47)), key1);
            __m256i high0 = _mm256_mul_epu32(_mm256_srli_epi64(lanes0, 32), prime);
            __m256i high1 = _mm256_mul_epu32(_mm256_srli_epi64(lanes1, 32), prime);
            lanes0 = _mm256_add_epi64(_mm256_mul_epu32(lanes0, prime), _mm256_slli_epi64(high0, 32));
            lanes1 = _mm256_add_epi64(_mm256_mul_epu32(lanes1, prime), _mm256_slli_epi64(high1, 32));
            at = 0;
        }
    }
    _mm256_storeu_si256(lanes, lanes0), _mm256_storeu_si256(lanes + 1, lanes1);
    digest->at = at;
    uint32_t sizes[8], signs[8];
    _mm256_storeu_si256((__m256i *)(void *)sizes, most), _mm256_storeu_si256((__m256i *)(void *)signs, least);
    for (int i = 0; i < 8; i++) {
        if (odd_half(sizes[i], signs[i], odd->limit)) return 1;
    }
    return 0;
}
#endif

/* Takes more bytes: whole stripes, but for the last time. Returns whether a float among them may be odd. */
static int digest_look(Digest *digest, const void *data, size_t bytes, const Odd *odd) {
    const unsigned char *from = (const unsigned char *)data;
    unsigned char last[STRIPE] = {0};
    int (*way)(Digest *, const unsigned char *, size_t, const Odd *) = take_stripes;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2")) way = take_stripes_avx2;
#endif
    size_t stripes = bytes / STRIPE, rest = bytes % STRIPE;
    int found = 0;
    digest->length += bytes;
    if (stripes) found = way(digest, from, stripes, odd);
    if (rest) {
        memcpy(last, from + stripes * STRIPE, rest);
        found |= way(digest, last, 1, odd);
    }
    return found;
}

static void digest_take(Digest *digest, const void *data, size_t bytes) { digest_look(digest, data, bytes, &odd_none); }

static void digest_end(Digest *digest, unsigned char out[DIGEST_BYTES]) {
    uint64_t first = digest->length, second = ~digest->length;
    digest_stir(digest->lanes);
    for (int i = 0; i < LANES; i++) {
        first = (first ^ digest->lanes[i]) * 0xbf58476d1ce4e5b9u;
        second = (second ^ digest->lanes[LANES - 1 - i]) * 0x94d049bb133111ebu;
        first ^= first >> 29, second ^= second >> 31;
    }
    first = digest_mix(first), second = digest_mix(second);
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(first >> (8 * i)), out[8 + i] = (unsigned char)(second >> (8 * i));
}

#endif
