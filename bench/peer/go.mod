module evenspread/bench/peer

go 1.24
