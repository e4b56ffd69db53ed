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
    uint64_t products[LANES], sums[LANES], length;
    unsigned at; /* the next stripe's place between two stirs */
} Digest;

static uint64_t digest_keys[STRIPES * LANES];

/* SplitMix64 (Sebastiano Vigna, public domain). */
static uint64_t digest_mix(uint64_t word) {
    word += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return word ^ (word >> 31);
}

/* Once, before anything else. */
static void digest_prepare(void) {
    for (int i = 0; i < STRIPES * LANES; i++) digest_keys[i] = digest_mix((uint64_t)i * 0x9e3779b97f4a7c15u);
}

static void digest_start(Digest *digest) { memset(digest, 0, sizeof *digest); }

static void add_stripes(Digest *digest, const unsigned char *from, const uint64_t *keys, size_t stripes) {
    for (size_t i = 0; i < stripes * LANES; i++) {
        uint64_t word;
        memcpy(&word, from + 8 * i, sizeof word);
        uint64_t mixed = word ^ keys[i];
        digest->sums[i % LANES] += word;
        digest->products[i % LANES] += (mixed & 0xffffffffu) * (mixed >> 32);
    }
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2")))
static void add_stripes_avx2(Digest *digest, const unsigned char *from, const uint64_t *keys, size_t stripes) {
    __m256i *products = (__m256i *)(void *)digest->products, *sums = (__m256i *)(void *)digest->sums;
    __m256i product0 = _mm256_loadu_si256(products), product1 = _mm256_loadu_si256(products + 1);
    __m256i sum0 = _mm256_loadu_si256(sums), sum1 = _mm256_loadu_si256(sums + 1);
    for (size_t i = 0; i < stripes; i++) {
        const __m256i *words = (const __m256i *)(const void *)(from + STRIPE * i);
        const __m256i *key = (const __m256i *)(const void *)(keys + LANES * i);
        __m256i word0 = _mm256_loadu_si256(words), word1 = _mm256_loadu_si256(words + 1);
        __m256i mixed0 = _mm256_xor_si256(word0, _mm256_loadu_si256(key));
        __m256i mixed1 = _mm256_xor_si256(word1, _mm256_loadu_si256(key + 1));
        sum0 = _mm256_add_epi64(sum0, word0), sum1 = _mm256_add_epi64(sum1, word1);
        product0 = _mm256_add_epi64(product0, _mm256_mul_epu32(mixed0, _mm256_srli_epi64(mixed0, 32)));
        product1 = _mm256_add_epi64(product1, _mm256_mul_epu32(mixed1, _mm256_srli_epi64(mixed1, 32)));
    }
    _mm256_storeu_si256(products, product0), _mm256_storeu_si256(products + 1, product1);
    _mm256_storeu_si256(sums, sum0), _mm256_storeu_si256(sums + 1, sum1);
}
#endif

/* Makes what came before count in its order: sums alone would not. */
static void digest_stir(Digest *digest) {
    for (int i = 0; i < LANES; i++)
        digest->products[i] = digest_mix(digest->products[i] + digest->sums[i ^ 1] * 0xff51afd7ed558ccdu);
    memset(digest->sums, 0, sizeof digest->sums);
    digest->at = 0;
}

/* Takes more bytes: whole stripes, but for the last time. */
static void digest_take(Digest *digest, const void *data, size_t bytes) {
    const unsigned char *from = (const unsigned char *)data;
    unsigned char last[STRIPE] = {0};
    digest->length += bytes;
    while (bytes) {
        size_t stripes = bytes / STRIPE, room = STRIPES - digest->at;
        if (!stripes) {
            memcpy(last, from, bytes);
            from = last, stripes = 1, bytes = STRIPE;
        }
        if (stripes > room) stripes = room;
#if defined(__x86_64__) && defined(__GNUC__)
        if (__builtin_cpu_supports("avx2"))
            add_stripes_avx2(digest, from, digest_keys + LANES * digest->at, stripes);
        else
#endif
            add_stripes(digest, from, digest_keys + LANES * digest->at, stripes);
        digest->at += (unsigned)stripes, from += stripes * STRIPE, bytes -= stripes * STRIPE;
        if (digest->at == STRIPES) digest_stir(digest);
    }
}

static void digest_end(Digest *digest, unsigned char out[DIGEST_BYTES]) {
    digest_stir(digest);
    uint64_t first = digest->length, second = ~digest->length;
    for (int i = 0; i < LANES; i++) {
        first = digest_mix(first ^ digest->products[i]);
        second = digest_mix(second + digest->products[LANES - 1 - i]);
    }
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(first >> (8 * i)), out[8 + i] = (unsigned char)(second >> (8 * i));
}

#endif
