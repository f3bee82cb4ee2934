-- How much of its rate limit each sender has used: src/admission/rate-limit.ts. A crash may empty
-- it: that only begins the windows anew, and the log is spared one entry per lease.
CREATE UNLOGGED TABLE "rate_limits" (
    "sender" TEXT NOT NULL,
    "ends" BIGINT NOT NULL,
    "used" INTEGER NOT NULL,
    "leased" INTEGER NOT NULL,

    CONSTRAINT "rate_limits_pkey" PRIMARY KEY ("sender")
);
