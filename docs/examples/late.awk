$1 ~ /^[0-9]+$/ { frames++; late += $8 < 0; waited += $11 }
END { print "late=" late + 0, "wake_up_us=" waited / frames }
