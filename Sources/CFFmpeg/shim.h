#pragma once
#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavcodec/vorbis_parser.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/base64.h>
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/error.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswresample/swresample.h>

// Function-like macros and compound literals, which Swift does not import.
static inline int cff_error(int code) { return AVERROR(code); }
static const int cff_error_eof = AVERROR_EOF;
static const int cff_error_invalid_data = AVERROR_INVALIDDATA;
static const int cff_error_exit = AVERROR_EXIT;
static const int cff_error_decoder_not_found = AVERROR_DECODER_NOT_FOUND;
static const int cff_error_stream_not_found = AVERROR_STREAM_NOT_FOUND;
static const int cff_error_demuxer_not_found = AVERROR_DEMUXER_NOT_FOUND;
static const int cff_error_protocol_not_found = AVERROR_PROTOCOL_NOT_FOUND;
static const int cff_error_patch_welcome = AVERROR_PATCHWELCOME;
static const int cff_error_http_not_found = AVERROR_HTTP_NOT_FOUND;
static const int cff_error_http_unauthorized = AVERROR_HTTP_UNAUTHORIZED;
static const int cff_error_http_forbidden = AVERROR_HTTP_FORBIDDEN;
static const int cff_error_http_bad_request = AVERROR_HTTP_BAD_REQUEST;
static const int cff_error_http_other = AVERROR_HTTP_OTHER_4XX;
static const int cff_error_http_server = AVERROR_HTTP_SERVER_ERROR;
// Anonymous memory as a file, closed when the process runs another program; glibc declares it only
// for programs that ask for all GNU extensions before anything else.
extern int memfd_create(const char *name, unsigned int flags);
static inline int cff_memory_file(void) { return memfd_create("tutti-media", 1u /* MFD_CLOEXEC */); }
static const int64_t cff_no_timestamp = AV_NOPTS_VALUE;
